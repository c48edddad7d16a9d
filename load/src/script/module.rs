//! C modules for scripts: refuses unusable modules before they are loaded.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The folders of Debian's packages: a variable of `package` (`path` and `cpath`), and what to add to it.
pub fn debian_folders() -> [(&'static str, String); 2] {
    let triplet = format!("/usr/lib/{}-linux-gnu/lua/5.1/?.so", std::env::consts::ARCH);
    [
        ("path", "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua".to_owned()),
        ("cpath", format!("{triplet};/usr/lib/lua/5.1/?.so")),
    ]
}

/// Device and inode number of a file, which identify it; `None` if it does not exist.
pub fn file_identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// Reason why a C module must not be loaded; `None` also for files that the system's loader will refuse.
pub fn load_problem(path: &str) -> Option<String> {
    if cfg!(target_feature = "crt-static") {
        return Some(format!("{path}: a static onrush cannot load C modules; build onrush from source to use them"));
    }
    // The system's loader refuses unreadable files and files that are not libraries.
    let needed = needed_libraries(Path::new(path)).unwrap_or_default();
    let own = needed.into_iter().find(|name| is_lua(name))?;
    Some(format!(
        "{path}: the module links its own Lua ({own}) and cannot share values with onrush's; build it without -llua, \
         as LuaRocks and Debian do"
    ))
}

/// True if a library is Lua itself, such as `liblua5.1.so.0` or `libluajit-5.1.so.2`, and not a module such as
/// `liblua5.1-socket.so.2`.
fn is_lua(library: &str) -> bool {
    let file = library.rsplit('/').next().unwrap_or_default();
    let stem = file.split(".so").next().unwrap_or_default();
    let Some(version) = stem.strip_prefix("liblua") else { return false };
    let version = version.strip_prefix("jit").unwrap_or(version);
    let version = version.strip_suffix("-c++").unwrap_or(version);
    version.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte))
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
/// Maximum length of a table or name.
const LENGTH_MAX: u64 = 1 << 16;

/// Names of the libraries that a 64-bit library needs, from its dynamic section.
fn needed_libraries(path: &Path) -> io::Result<Vec<String>> {
    let file = File::open(path)?;
    let header = read_bytes(&file, 0, 64)?;
    if !header.starts_with(b"\x7fELF\x02") {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let (at, size, count) =
        (parse_integer(&header, 32, 8), parse_integer(&header, 54, 2), parse_integer(&header, 56, 2));
    let table = read_bytes(&file, at, size * count)?;
    // Kind, offset, address and file length.
    let segments: Vec<[u64; 4]> = table
        .chunks_exact((size as usize).max(56))
        .map(|entry| {
            [
                parse_integer(entry, 0, 4),
                parse_integer(entry, 8, 8),
                parse_integer(entry, 16, 8),
                parse_integer(entry, 32, 8),
            ]
        })
        .collect();
    let Some([_, at, _, length]) = segments.iter().find(|segment| segment[0] == PT_DYNAMIC) else {
        return Ok(Vec::new());
    };
    let dynamic = read_bytes(&file, *at, *length)?;
    let entries = dynamic.chunks_exact(16).map(|entry| (parse_integer(entry, 0, 8), parse_integer(entry, 8, 8)));
    let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != DT_NULL).collect();
    let names_address = entries.iter().find(|(tag, _)| *tag == DT_STRTAB).map_or(0, |(_, value)| *value);
    let holds = |[kind, _, address, length]: &&[u64; 4]| {
        *kind == PT_LOAD && names_address.checked_sub(*address).is_some_and(|offset| offset < *length)
    };
    let Some([_, offset, address, _]) = segments.iter().find(holds) else { return Ok(Vec::new()) };
    let names_at = offset.saturating_add(names_address - address);
    let names = entries
        .iter()
        .filter(|(tag, _)| *tag == DT_NEEDED)
        .map(|(_, place)| read_name(&file, names_at.saturating_add(*place)));
    names.collect()
}

/// The NUL-terminated text at this offset.
fn read_name(file: &File, at: u64) -> io::Result<String> {
    let mut bytes = [0; 256];
    let length = file.read_at(&mut bytes, at)?;
    let text = bytes[..length].split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn read_bytes(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length.min(LENGTH_MAX) as usize];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// An integer of this many bytes, in native byte order.
fn parse_integer(bytes: &[u8], at: usize, length: usize) -> u64 {
    let mut number = [0; 8];
    let from = if cfg!(target_endian = "big") { 8 - length } else { 0 };
    number[from..from + length].copy_from_slice(&bytes[at..at + length]);
    u64::from_ne_bytes(number)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn needed_libraries_are_read() {
        // The test binary is itself such a file, or at least has no fewer libraries.
        let needed = needed_libraries(Path::new("/proc/self/exe")).unwrap();
        assert_eq!(needed.iter().any(|name| name.starts_with("libc.so")), cfg!(not(target_feature = "crt-static")));
        assert!(needed.iter().all(|name| name.contains(".so")), "{needed:?}");
    }

    #[test]
    fn lua_is_distinguished_from_its_modules() {
        for name in ["liblua5.1.so.0", "liblua.so", "/opt/liblua-5.1.so", "libluajit-5.1.so.2", "liblua5.1-c++.so.0"] {
            assert!(is_lua(name), "{name}");
        }
        for name in ["libc.so.6", "liblua5.1-socket.so.2", "liblualib.so", "libm.so.6", ""] {
            assert!(!is_lua(name), "{name}");
        }
    }

    #[test]
    fn non_libraries_need_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("module.so");
        let whole = fs::read("/proc/self/exe").unwrap();
        for length in [0, 4, 63, 64, 100, 500] {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(needed_libraries(&path).is_err(), "{length}");
            assert_eq!(load_problem(path.to_str().unwrap()).is_some(), cfg!(target_feature = "crt-static"));
        }
        let mut absurd = whole[..64].to_vec();
        absurd[32..].fill(0xff);
        fs::write(&path, absurd).unwrap();
        assert!(needed_libraries(&path).is_err());
    }
}
