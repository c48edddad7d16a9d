//! Copies values between states. The copies share nothing with the originals.

use std::collections::HashMap;
use std::ffi::c_void;

use mlua::{Lua, Table, Value};

/// Maximum nesting of tables.
const DEPTH_MAX: usize = 100;

/// Direction of a copy, for error messages.
#[derive(Clone, Copy, Debug)]
pub enum Direction {
    /// By `thread:set`, to a thread.
    ToThread,
    /// By `thread:get`, from a thread.
    FromThread,
}

/// Copies nil, a boolean, a number, a string, or a table of such values and tables, without metatables. A table that
/// occurs twice is copied once.
///
/// # Errors
///
/// Fails if a value cannot be copied, with its kind and path.
pub fn copy_value(value: &Value, to: &Lua, direction: Direction) -> Result<Value, String> {
    Copy { to, direction, tables: HashMap::new(), path: Vec::new() }.copy_any(value)
}

struct Copy<'a> {
    to: &'a Lua,
    direction: Direction,
    /// The tables copied so far; `None` while a copy is in progress.
    tables: HashMap<*const c_void, Option<Table>>,
    /// Keys leading to the current value.
    path: Vec<String>,
}

impl Copy<'_> {
    fn copy_any(&mut self, value: &Value) -> Result<Value, String> {
        match value {
            Value::Nil => Ok(Value::Nil),
            Value::Boolean(boolean) => Ok(Value::Boolean(*boolean)),
            Value::Integer(integer) => Ok(Value::Integer(*integer)),
            Value::Number(number) => Ok(Value::Number(*number)),
            Value::String(string) => {
                let copied = self.to.create_string(&*string.as_bytes());
                copied.map(Value::String).map_err(|error| error.to_string())
            }
            Value::Table(table) => self.copy_table(table).map(Value::Table),
            Value::LightUserData(_) => Err(self.refusal_message("userdata", "")),
            Value::Other(_) => Err(self.refusal_message("cdata", "")),
            other => Err(self.refusal_message(other.type_name(), "")),
        }
    }

    fn copy_table(&mut self, table: &Table) -> Result<Table, String> {
        let pointer = table.to_pointer();
        match self.tables.get(&pointer) {
            Some(Some(copied)) => return Ok(copied.clone()),
            Some(None) => return Err(self.refusal_message("table", ", which contains itself")),
            None if self.path.len() >= DEPTH_MAX => {
                return Err(format!(
                    "cannot transfer 'table' {}: more than {DEPTH_MAX} tables deep",
                    self.direction.preposition_and_thread()
                ));
            }
            None => self.tables.insert(pointer, None),
        };
        let copied = self.to.create_table().map_err(|error| error.to_string())?;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair.map_err(|error| error.to_string())?;
            self.path.push(key_text(&key));
            let pair = (self.copy_any(&key)?, self.copy_any(&value)?);
            copied.raw_set(pair.0, pair.1).map_err(|error| error.to_string())?;
            self.path.pop();
        }
        self.tables.insert(pointer, Some(copied.clone()));
        Ok(copied)
    }

    fn refusal_message(&self, kind: &str, more: &str) -> String {
        let place = if self.path.is_empty() { String::new() } else { format!(" at {}", self.path.join(".")) };
        format!("cannot transfer '{kind}' {}{place}{more}", self.direction.preposition_and_thread())
    }
}

impl Direction {
    fn preposition_and_thread(self) -> &'static str {
        match self {
            Self::ToThread => "to thread",
            Self::FromThread => "from thread",
        }
    }
}

/// A key as shown in messages.
fn key_text(key: &Value) -> String {
    match key {
        Value::String(string) => string.to_string_lossy(),
        Value::Integer(integer) => integer.to_string(),
        Value::Number(number) => number.to_string(),
        other => format!("[{}]", other.type_name()),
    }
}
