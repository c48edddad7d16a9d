# Installs Debian packages, and keeps their services from starting: now and at the next boot.
# Called as: sh -c "$(this file)" install POLICY "SERVICE..." PACKAGE...
#
# Debian asks POLICY (/usr/sbin/policy-rc.d) before it starts a service; there is no other switch. If it does not exist,
# this script puts one there that always says no, and removes it at its end. An existing one is the administrator's: it
# stays.
set -eu
policy=$1
services=$2
shift 2
mark='# Put here by the tests of onrush for the time of one installation.'

if [ ! -e "$policy" ] || grep -qxF "$mark" "$policy"; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
    chmod 755 "$policy"
fi

install_packages() {
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
}

# The list of packages is only fetched when it is missing or too old.
install_packages "$@" || { apt-get update && install_packages "$@"; }

if [ -n "$services" ] && command -v systemctl >/dev/null; then
    # shellcheck disable=SC2086 # one word per service
    systemctl --quiet disable $services || echo "It may start at the next boot: $services"
fi
