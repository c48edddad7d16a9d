//! The callbacks from the engine into a script, one for each function the script defines.

use std::rc::Rc;

use onrush_engine::{Callbacks, OnResponse, Source};

use super::thread::ScriptThread;
use super::written::WrittenRequests;

/// The callbacks of a worker, for use in its thread. Dropping all of them returns the state. The source is `None` if
/// the script has no `request` function.
pub fn callbacks_for_thread(thread: ScriptThread) -> (Option<Box<dyn Source>>, Callbacks) {
    let wants = thread.wants;
    let thread = Rc::new(thread);
    let source: Option<Box<dyn Source>> =
        if wants.request { Some(Box::new(WrittenRequests::new(Rc::clone(&thread)))) } else { None };
    let response = wants.response.then(|| {
        let thread = Rc::clone(&thread);
        OnResponse {
            headers: wants.headers,
            body: wants.body,
            call: Box::new(move |answer| thread.pass_response(answer)),
        }
    });
    let think_ns = wants.delay.then(|| -> Box<dyn FnMut() -> _> {
        let thread = Rc::clone(&thread);
        Box::new(move || thread.delay_ns())
    });
    let [of_stop, of_address, of_long] = [0; 3].map(|_| Rc::clone(&thread));
    let callbacks = Callbacks {
        response,
        think_ns,
        is_stopped: Some(Box::new(move || of_stop.decisions().is_stopped.get())),
        address: Some(Box::new(move || of_address.decisions().address.get())),
        spent_ns: Some(Box::new(move || thread.spent_ns())),
        take_long: Some(Box::new(move || of_long.take_long_periods())),
    };
    (source, callbacks)
}
