//! Values of files, as the bytes to send.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush_plan::FileContents;

use super::filter::{RequestPart, ValueFilter};
use super::placeholder::ValueSource;
use super::table::ValueTable;

/// The value files of a run, and the values that its placeholders need, ready to send. Clones share the bytes of both.
#[derive(Clone, Debug, Default)]
pub struct Values {
    tables: BTreeMap<String, ValueTable>,
    columns: BTreeMap<(ValueSource, Vec<ValueFilter>, RequestPart), Arc<ValueColumn>>,
}

/// The values of a column, or the lines of a file, encoded for one part of a request; at least one.
#[derive(Debug, Default)]
pub struct ValueColumn {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Values {
    /// Reads the files of values, which placeholders name by [`FileContents::name`].
    ///
    /// # Errors
    ///
    /// Names the first file without values, and the reason.
    pub fn from_files<'a>(files: impl IntoIterator<Item = &'a FileContents>) -> Result<Self, String> {
        let table = |file: &FileContents| match ValueTable::from_contents(file) {
            Ok(table) => Ok((file.name.clone(), table)),
            Err(reason) => Err(format!("{:?}: {reason}", file.name)),
        };
        let tables = files.into_iter().map(table).collect::<Result<_, _>>()?;
        Ok(Self { tables, columns: BTreeMap::new() })
    }

    /// The values for a placeholder in this part of a request. They are encoded on first use, and shared by later
    /// calls.
    ///
    /// # Errors
    ///
    /// Names the file, and the line and the reason why a value cannot be sent, or the fault in the file.
    pub fn column(
        &mut self,
        source: &ValueSource,
        filters: &[ValueFilter],
        place: RequestPart,
    ) -> Result<Arc<ValueColumn>, String> {
        let key = (source.clone(), filters.to_vec(), place);
        if let Some(column) = self.columns.get(&key) {
            return Ok(Arc::clone(column));
        }
        let wrong = |reason| format!("{:?}: {reason}", source.file);
        let table = self.tables.get(&source.file).ok_or_else(|| wrong("the file was not read".to_owned()))?;
        let column = Arc::new(ValueColumn::from_table(table, source, filters, place).map_err(wrong)?);
        self.columns.insert(key, Arc::clone(&column));
        Ok(column)
    }

    /// Number of values in each column prepared so far.
    pub fn lengths(&self) -> impl Iterator<Item = u64> {
        self.columns.values().map(|column| column.ends.len() as u64)
    }
}

impl ValueColumn {
    fn from_table(
        table: &ValueTable,
        source: &ValueSource,
        filters: &[ValueFilter],
        place: RequestPart,
    ) -> Result<Self, String> {
        let mut column = Self::default();
        let usual = [place.usual()];
        let filters = if filters.is_empty() { &usual } else { filters };
        table.values(source.column.as_deref(), |value| {
            let value = filters.iter().fold(String::from(value), |value, filter| filter.apply(&value));
            if let Some(flaw) = place.reason_not_sendable(&value) {
                return Err(flaw);
            }
            column.bytes.extend_from_slice(value.as_bytes());
            column.ends.push(column.bytes.len());
            Ok(())
        })?;
        column.bytes.shrink_to_fit();
        column.ends.shrink_to_fit();
        Ok(column)
    }

    /// The value for request `k` of the run: values take turns, starting over after the last.
    pub fn value(&self, k: u64) -> &[u8] {
        let row = (k % self.ends.len() as u64) as usize;
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }
}
