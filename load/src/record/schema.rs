//! Files that are generated: the schema of a document from its structs, and texts.

#![cfg(any(test, feature = "testing"))]

use std::fs;
use std::path::Path;

use schemars::{JsonSchema, SchemaGenerator};

/// Checks that a file has the schema of these structs.
pub fn check<T: JsonSchema>(file: &str, title: &str) {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>();
    never_null(schema.ensure_object().values_mut());
    schema.insert("title".to_owned(), title.into());
    check_text(file, &(serde_json::to_string_pretty(&schema).unwrap() + "\n"), "the_schema");
}

/// Checks that a file has this text, in a test that this selects; with `SAVE` in the environment, writes it first.
pub fn check_text(file: &str, text: &str, test: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    if std::env::var_os("SAVE").is_some() {
        fs::write(&path, text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{file} is out of date: SAVE=1 cargo test --lib {test} writes it");
}

/// Removes null from the types: keys that do not apply are left out, but the generator assumes that they may be null.
fn never_null<'a>(values: impl Iterator<Item = &'a mut serde_json::Value>) {
    use serde_json::Value;
    for value in values {
        match value {
            Value::Object(fields) => {
                if let Some(Value::Array(types)) = fields.get_mut("type") {
                    types.retain(|name| name != "null");
                    let only = types.pop().filter(|_| types.is_empty()).expect("one type beside null");
                    fields.insert("type".to_owned(), only);
                }
                if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
                    choices.retain(|choice| choice["type"] != "null");
                    let only = choices.pop().filter(|_| choices.is_empty()).expect("one choice beside null");
                    fields.remove("anyOf");
                    fields.extend(only.as_object().expect("a schema").clone());
                }
                never_null(fields.values_mut());
            }
            Value::Array(values) => never_null(values.iter_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
