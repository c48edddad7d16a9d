//! Header fields as a Lua table, with names exactly as sent. The last of several fields with the same name wins. HTTP/2
//! names are lower case; scripts can look them up in any case.

use std::ffi::c_int;

use memchr::{memchr, memchr_iter};
use mlua::ffi::{self, lua_State};

/// Maximum initial size of the table, in fields.
const FIELDS_MAX: usize = 64;

/// True if the head has any field after the status line.
pub fn has_fields(head: &[u8]) -> bool {
    parse_fields(after_first_line(head)).next().is_some()
}

/// Pushes a table with the fields of a head and its trailers.
///
/// # Safety
///
/// Must be called by a C function that Lua called, with room for three values on the stack.
pub unsafe fn push_fields(raw: *mut lua_State, head: &[u8], trailers: &[u8]) {
    // SAFETY: as the caller promises; the bytes are copied.
    unsafe {
        // One line is the status and one is empty. A table of the right size never grows and is the cheapest to free.
        let lines = memchr_iter(b'\n', head).count().saturating_sub(2);
        ffi::lua_createtable(raw, 0, lines.min(FIELDS_MAX) as c_int);
        for (name, value) in parse_fields(after_first_line(head)).chain(parse_fields(trailers)) {
            ffi::lua_pushlstring_(raw, name.as_ptr().cast(), name.len());
            ffi::lua_pushlstring_(raw, value.as_ptr().cast(), value.len());
            ffi::lua_rawset(raw, -3);
        }
        if head.starts_with(b"HTTP/2") {
            if ffi::luaL_newmetatable(raw, c"onrush.fields".as_ptr()) != 0 {
                ffi::lua_pushcfunction(raw, lookup_lower_case);
                ffi::lua_setfield(raw, -2, c"__index".as_ptr());
            }
            ffi::lua_setmetatable(raw, -2);
        }
    }
}

/// Looks up the lower-case key in a table.
unsafe extern "C-unwind" fn lookup_lower_case(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with the table and the key; the name is copied, and the table is accessed raw.
    unsafe {
        let mut length = 0;
        if ffi::lua_type(raw, 2) == ffi::LUA_TSTRING {
            let key = ffi::lua_tolstring(raw, 2, &raw mut length).cast::<u8>();
            let name = std::slice::from_raw_parts(key, length).to_ascii_lowercase();
            ffi::lua_pushlstring_(raw, name.as_ptr().cast(), name.len());
            ffi::lua_rawget(raw, 1);
        } else {
            ffi::lua_pushnil(raw);
        }
        1
    }
}

/// The bytes after the status line.
fn after_first_line(head: &[u8]) -> &[u8] {
    memchr(b'\n', head).map_or(&[], |end| &head[end + 1..])
}

/// Names and values of a section of fields; lines without a colon are skipped.
fn parse_fields(mut section: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        while !section.is_empty() {
            let end = memchr(b'\n', section).unwrap_or(section.len());
            let line = &section[..end];
            section = section.get(end + 1..).unwrap_or(&[]);
            if let Some(colon) = memchr(b':', line) {
                return Some((line[..colon].trim_ascii_end(), line[colon + 1..].trim_ascii()));
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_fields(section: &[u8]) -> Vec<(&str, &str)> {
        parse_fields(section)
            .map(|(name, value)| (str::from_utf8(name).unwrap(), str::from_utf8(value).unwrap()))
            .collect()
    }

    #[test]
    fn field_values_are_trimmed() {
        let section = b"Server: a\r\nX-a:b: c \r\ncontent-LENGTH:\t12\nempty:\r\n\r\n";
        assert_eq!(all_fields(section), [("Server", "a"), ("X-a", "b: c"), ("content-LENGTH", "12"), ("empty", "")]);
        assert_eq!(all_fields(b"no colon\r\nlast: one"), [("last", "one")]);
        assert_eq!(all_fields(b""), []);
    }

    #[test]
    fn status_lines_alone_have_no_fields() {
        assert!(has_fields(b"HTTP/1.1 200 OK\r\na: b\r\n\r\n"));
        assert!(!has_fields(b"HTTP/1.1 200 a: b\r\n\r\n"));
        assert!(!has_fields(b"HTTP/1.1 200 OK"));
        assert!(!has_fields(b""));
    }
}
