//! Software bill of materials of the packaged program, in CycloneDX: crates, their C code, Rust's library and musl.
//!
//! Contains nothing about this machine: the same commit and the same Rust give identical bytes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Error};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use serde_json::{Value, json};
use spdx::Expression;

use crate::crates::{self, Crate, CrateId};

/// A component of the program that is not a crate.
struct BundledComponent {
    name: &'static str,
    version: String,
    licence: String,
    purl: String,
    /// The crate that contains or uses the component.
    of: &'static str,
}

/// Prints the document. `time` is the time of the release, such as `2026-01-31T12:00:00Z`.
pub fn run(time: &str) -> io::Result<ExitCode> {
    let crates = crates::in_program()?;
    let parts = [aws_lc(&crates)?, luajit(&crates)?, std()?, musl()?];
    let sums = checksums(&fs::read_to_string(super::root().join("Cargo.lock"))?);
    println!("{:#}", document(time, &crates, &parts, &sums)?);
    Ok(ExitCode::SUCCESS)
}

fn document(
    time: &str,
    crates: &[Crate],
    parts: &[BundledComponent],
    sums: &BTreeMap<CrateId, String>,
) -> io::Result<Value> {
    let mut program = Value::Null;
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for of in crates {
        let mut component = component(&of.id.0, &of.id.1, &of.licence, &purl(of))?;
        if let Some(sum) = sums.get(&of.id) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        let used = crates.iter().filter(|other| of.uses.contains(&other.id)).map(purl);
        let used = used.chain(parts.iter().filter(|part| part.of == of.id.0).map(|part| part.purl.clone()));
        dependencies.push(json!({ "ref": purl(of), "dependsOn": used.collect::<Vec<_>>() }));
        if of.id.0 == "onrush" {
            component["type"] = json!("application");
            program = component;
        } else {
            components.push(component);
        }
    }
    for part in parts {
        components.push(component(part.name, &part.version, &part.licence, &part.purl)?);
        dependencies.push(json!({ "ref": part.purl, "dependsOn": [] }));
    }
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "timestamp": time, "lifecycles": [{ "phase": "build" }], "component": program },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// A library. Converts the licence to the standard's syntax, because manifests may have older forms such as
/// `MIT/Apache-2.0`.
fn component(name: &str, version: &str, licence: &str, purl: &str) -> io::Result<Value> {
    let canonical = Expression::canonicalize(licence).map_err(Error::other)?;
    Ok(json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{ "expression": canonical.as_deref().unwrap_or(licence) }],
        "purl": purl,
    }))
}

/// Package URL of a crate. The crates of this repository are in no registry: packages there with their names are not
/// ours.
fn purl(of: &Crate) -> String {
    let registry = if of.is_ours { "generic" } else { "cargo" };
    format!("pkg:{registry}/{}@{}", of.id.0, of.id.1.replace('+', "%2B"))
}

/// Checksums of the crates in a `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<CrateId, String> {
    let sum = |package: &str| {
        let value = |key: &str| {
            let mut lines = package.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            Some(lines.next()?.trim_end_matches('"').to_owned())
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(sum).collect()
}

fn aws_lc(crates: &[Crate]) -> io::Result<BundledComponent> {
    let of = named(crates, "aws-lc-sys")?;
    let header = fs::read_to_string(of.folder.join("aws-lc/include/openssl/base.h"))?;
    let version =
        header.split_once("#define AWSLC_VERSION_NUMBER_STRING \"").and_then(|(_, rest)| rest.split_once('"'));
    let (version, _) = version.ok_or_else(|| Error::other("aws-lc-sys does not tell the version of AWS-LC"))?;
    Ok(BundledComponent {
        name: "AWS-LC",
        version: version.to_owned(),
        licence: of.licence.clone(),
        purl: format!("pkg:github/aws/aws-lc@v{version}"),
        of: "aws-lc-sys",
    })
}

/// LuaJIT numbers its releases by time, and the version of the crate contains the commit.
fn luajit(crates: &[Crate]) -> io::Result<BundledComponent> {
    let of = named(crates, "luajit-src")?;
    let time = fs::read_to_string(of.folder.join("luajit_relver.txt"))?;
    let (_, commit) =
        of.id.1.split_once('+').ok_or_else(|| Error::other("luajit-src does not tell the commit of LuaJIT"))?;
    Ok(BundledComponent {
        name: "LuaJIT",
        version: format!("2.1.{}", time.trim()),
        licence: of.licence.clone(),
        purl: format!("pkg:github/luajit/luajit@{commit}"),
        of: "luajit-src",
    })
}

/// Rust's library, with the version of the compiler.
fn std() -> io::Result<BundledComponent> {
    let version = rustc(&["--version"])?;
    let version = version.split(' ').nth(1).unwrap_or_default().to_owned();
    let purl = format!("pkg:github/rust-lang/rust@{version}");
    Ok(BundledComponent { name: "std", version, licence: "MIT OR Apache-2.0".to_owned(), purl, of: "onrush" })
}

/// musl comes with Rust, which does not report musl's version; the version is a string in the library itself.
fn musl() -> io::Result<BundledComponent> {
    let libraries = PathBuf::from(rustc(&["--print", "target-libdir", "--target", crates::TARGET])?);
    let library = fs::read(libraries.join("self-contained/libc.a"))
        .map_err(|_| Error::other(format!("Rust's target {0} is missing: rustup target add {0}", crates::TARGET)))?;
    let mut words =
        library.split(|byte| !byte.is_ascii_digit() && *byte != b'.').filter(|word| word.starts_with(b"1."));
    let version = words.find(|word| word.split(|byte| *byte == b'.').filter(|number| !number.is_empty()).count() == 3);
    let version = version.ok_or_else(|| Error::other("libc.a does not tell the version of musl"))?;
    let version = String::from_utf8_lossy(version).into_owned();
    let purl = format!("pkg:generic/musl@{version}");
    Ok(BundledComponent { name: "musl", version, licence: "MIT".to_owned(), purl, of: "onrush" })
}

fn named<'a>(crates: &'a [Crate], name: &str) -> io::Result<&'a Crate> {
    crates.iter().find(|of| of.id.0 == name).ok_or_else(|| Error::other(format!("the program has no {name} any more")))
}

/// Output of the compiler, without the final newline.
fn rustc(arguments: &[&str]) -> io::Result<String> {
    let said = crates::command_output(Command::new("rustc").current_dir(super::root()).args(arguments))?;
    Ok(said.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_have_checksums_users_and_addresses() {
        let lock = "[[package]]\nname = \"toml\"\nversion = \"1.2.1+spec\"\nsource = \"…\"\nchecksum = \"ab12\"\n\n\
                    [[package]]\nname = \"onrush\"\nversion = \"0.1.0\"\ndependencies = [\n \"toml\",\n]\n";
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let of = |id: CrateId, licence: &str, is_ours, uses: &[CrateId]| {
            let uses = uses.iter().cloned().collect();
            Crate { id, licence: licence.to_owned(), folder: PathBuf::new(), is_ours, uses }
        };
        let toml = id("toml", "1.2.1+spec");
        let crates = [
            of(id("onrush", "0.1.0"), "MIT OR Apache-2.0", true, std::slice::from_ref(&toml)),
            of(toml, "MIT/Apache-2.0", false, &[]),
        ];
        let document = document("2026-01-31T12:00:00Z", &crates, &[], &checksums(lock)).unwrap();
        assert_eq!(document["metadata"]["component"]["purl"], "pkg:generic/onrush@0.1.0");
        let expected = json!([{
            "type": "library",
            "bom-ref": "pkg:cargo/toml@1.2.1%2Bspec",
            "name": "toml",
            "version": "1.2.1+spec",
            "hashes": [{ "alg": "SHA-256", "content": "ab12" }],
            "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            "purl": "pkg:cargo/toml@1.2.1%2Bspec",
        }]);
        assert_eq!(document["components"], expected);
        let expected = json!([
            { "ref": "pkg:generic/onrush@0.1.0", "dependsOn": ["pkg:cargo/toml@1.2.1%2Bspec"] },
            { "ref": "pkg:cargo/toml@1.2.1%2Bspec", "dependsOn": [] },
        ]);
        assert_eq!(document["dependencies"], expected);
    }
}
