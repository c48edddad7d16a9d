//! A value that `request` returned for the responses to its batch.

use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;

use onrush_engine::Response;
use onrush_proto::Remark;

/// Keys of kept values that no request refers to any more, to be released in the state.
#[derive(Clone, Default)]
pub struct FreedKeys(Rc<RefCell<Vec<c_int>>>);

impl FreedKeys {
    /// Takes one of the keys, if there is one.
    pub fn take_key(&self) -> Option<c_int> {
        self.0.borrow_mut().pop()
    }
}

/// A script's value, by its key in the state. Dropping it does not access the state, which another thread may own by
/// then.
pub struct KeptValue {
    key: c_int,
    freed: FreedKeys,
}

impl KeptValue {
    /// The value as a remark on requests. When the last request with it has ended, its key is added to `freed`.
    pub fn remark_with_value(key: c_int, freed: &FreedKeys) -> Remark {
        Remark(Rc::new(Self { key, freed: freed.clone() }))
    }

    /// Key of the value that `request` returned for the request with this response, if any.
    pub fn value_key(response: &Response<'_>) -> Option<c_int> {
        response.remark.and_then(|remark| remark.0.downcast_ref::<Self>()).map(|value| value.key)
    }
}

impl Drop for KeptValue {
    fn drop(&mut self) {
        self.freed.0.borrow_mut().push(self.key);
    }
}
