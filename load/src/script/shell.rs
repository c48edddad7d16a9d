//! `os.execute` and `io.popen`, with commands that signals can end.
//!
//! The C library's functions are unsuitable: `system` ignores SIGINT and SIGQUIT in the whole process while a command
//! runs, and commands of a worker's thread inherit its blocked signals. So each command gets its own process group, and
//! signals that end the program are passed on to it. If standard input is a terminal, commands stay in the program's
//! group, so that they can read from the terminal and get its signals, such as Ctrl-C; other signals then reach only
//! the shell.

use std::cell::RefCell;
use std::ffi::{OsStr, c_int};
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mlua::ffi::{self, lua_State};
use mlua::{Lua, LuaString, Table};
use onrush_text::error_reason;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level;

/// Running commands as arguments of `kill`: groups are negative, zero is a free entry. Commands beyond this number get
/// no signals.
static RUNNING: [AtomicI32; 256] = [const { AtomicI32::new(0) }; 256];
/// The last signal, and in the higher bits the number of signals so far. Zero means none.
static SIGNALLED: AtomicU32 = AtomicU32::new(0);

/// Number of commands being started, which do not count as running yet.
static STARTING: AtomicU32 = AtomicU32::new(0);
/// Maximum wait at the end of the program for commands being started.
const START_MAX: Duration = Duration::from_secs(1);

/// Exit status of a command that could not be started, where `system` reports none.
const NOT_STARTED: i32 = -1;

/// Adds the host functions. If `ends_for_good`, no command starts after a signal: the thread is about to end and must
/// not wait for another command. Only `done` is called after a signal.
pub fn add_command_functions(lua: &Lua, native: &Table, ends_for_good: bool) -> mlua::Result<()> {
    let ending = move || Some(SIGNALLED.load(Ordering::SeqCst)).filter(|&last| ends_for_good && last != 0);
    let execute = move |_: &Lua, command: LuaString| {
        // As if the signal had ended the command.
        Ok(ending().map_or_else(|| execute_command(&command.as_bytes()), signal_number))
    };
    native.raw_set("execute", lua.create_function(execute)?)?;
    // Keyed by the descriptor of the script's file; the last entry of a descriptor is current.
    let piped: Rc<RefCell<Vec<(c_int, RunningCommand)>>> = Rc::default();
    let of = Rc::clone(&piped);
    let popen = move |_: &Lua, (file, command, is_read): (i32, LuaString, bool)| {
        let mut piped = of.borrow_mut();
        // Scripts leave some files open for good.
        piped.retain_mut(|(_, running)| !matches!(running.child.try_wait(), Ok(Some(_))));
        let command = if ending().is_some() { b":".to_vec() } else { command.as_bytes().to_vec() };
        Ok(match pipe_command(file, &command, is_read) {
            Ok(running) => {
                piped.push((file, running));
                (None, None)
            }
            Err(error) => (Some(error_reason(&error)), error.raw_os_error()),
        })
    };
    native.raw_set("popen", lua.create_function(popen)?)?;
    let wait = move |_: &Lua, file: i32| {
        let mut piped = piped.borrow_mut();
        let place = piped.iter().rposition(|(known, _)| *known == file);
        drop(place.map(|place| piped.remove(place).1.wait_for_status()));
        Ok(())
    };
    native.raw_set("wait", lua.create_function(wait)?)?;
    // SAFETY: the function only pushes a number, for which every C function has room.
    native.raw_set("fileno", unsafe { lua.create_c_function(fileno)? })
}

/// Runs a command and returns its wait status, or [`NOT_STARTED`]. Blocks until it has ended.
fn execute_command(command: &[u8]) -> i32 {
    start_command(&mut shell_command(command)).and_then(RunningCommand::wait_for_status).unwrap_or(NOT_STARTED)
}

/// Starts a command with one end of a pipe, and replaces an open file with the other end.
fn pipe_command(file: c_int, command: &[u8], is_read: bool) -> io::Result<RunningCommand> {
    let mut shell = shell_command(command);
    if is_read {
        shell.stdout(Stdio::piped())
    } else {
        shell.stdin(Stdio::piped())
    };
    let mut running = start_command(&mut shell)?;
    let child = &mut running.child;
    let ours: Option<OwnedFd> =
        if is_read { child.stdout.take().map(OwnedFd::from) } else { child.stdin.take().map(OwnedFd::from) };
    let ours = ours.expect("it was asked for");
    // SAFETY: both are open: `file` belongs to the script's file and is replaced at once.
    if unsafe { libc::dup3(ours.as_raw_fd(), file, libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(running)
}

/// The command as the C library would run it: up to the first NUL.
fn shell_command(command: &[u8]) -> Command {
    let command = command.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(OsStr::from_bytes(command));
    shell
}

struct RunningCommand {
    child: Child,
    /// The command's entry in [`RUNNING`].
    place: Option<&'static AtomicI32>,
}

/// Starts a command that receives passed-on signals.
fn start_command(command: &mut Command) -> io::Result<RunningCommand> {
    static ONCE: Once = Once::new();
    ONCE.call_once(pass_signals_on);
    let before = SIGNALLED.load(Ordering::SeqCst);
    let is_own = !io::stdin().is_terminal();
    if is_own {
        command.process_group(0);
    }
    STARTING.fetch_add(1, Ordering::SeqCst);
    let running = with_no_signal_blocked(|| command.spawn()).map(|child| RunningCommand::new(child, is_own));
    STARTING.fetch_sub(1, Ordering::SeqCst);
    let last = SIGNALLED.load(Ordering::SeqCst);
    if last != before {
        // The signal arrived during the start.
        pass_on_again();
    }
    running
}

/// Runs `work` with no signal blocked in this thread: a command inherits its parent's blocked signals.
fn with_no_signal_blocked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are plain data that the calls fill in, and the thread's original set is restored.
    let before = unsafe {
        let (mut none, mut before) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, &mut before);
        before
    };
    let done = work();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    done
}

impl RunningCommand {
    /// Registers a running command, in its own process group or not.
    fn new(child: Child, is_own: bool) -> Self {
        let id = child.id() as i32;
        let target = if is_own { -id } else { id };
        let take = |place: &&AtomicI32| place.compare_exchange(0, target, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        Self { child, place: RUNNING.iter().find(take) }
    }

    /// Waits for the command and returns its status.
    fn wait_for_status(mut self) -> io::Result<i32> {
        let status = self.child.wait();
        pass_on_again();
        status.map(ExitStatusExt::into_raw)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.place.iter().for_each(|place| place.store(0, Ordering::SeqCst));
    }
}

/// Starts to pass on the signals that end the program to its commands. Signals without a handler are left alone.
fn pass_signals_on() {
    for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|number| is_handled(*number)) {
        let pass_on = move || {
            let count = SIGNALLED.load(Ordering::SeqCst) >> 8;
            SIGNALLED.store(count.wrapping_add(1) << 8 | number as u32, Ordering::SeqCst);
            signal_all(number);
        };
        // SAFETY: the action only accesses atomics and calls `kill`, which a signal handler may.
        // If the action cannot be registered, the program ends and its commands continue.
        drop(unsafe { low_level::register(number, pass_on) });
    }
}

/// Signal number of a value of [`SIGNALLED`].
fn signal_number(signalled: u32) -> c_int {
    (signalled & 0xff) as c_int
}

fn is_handled(number: c_int) -> bool {
    // SAFETY: the structure is plain data, and the call only fills it in.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(number, std::ptr::null(), &mut action);
        action.sa_sigaction
    };
    action != libc::SIG_DFL && action != libc::SIG_IGN
}

/// Passes on the last signal again: a signal that arrives while a shell starts a program may reach only the shell.
fn pass_on_again() {
    match SIGNALLED.load(Ordering::SeqCst) {
        0 => {}
        last => signal_all(signal_number(last)),
    }
}

/// Ends all commands, including ones being started, because the program is about to end. No thread starts another one.
pub fn end_commands() {
    // Keep a signal that has already arrived.
    let _ = SIGNALLED.compare_exchange(0, 1 << 8 | SIGTERM as u32, Ordering::SeqCst, Ordering::SeqCst);
    let start = Instant::now();
    while STARTING.load(Ordering::SeqCst) > 0 && start.elapsed() < START_MAX {
        std::thread::yield_now();
    }
    // Background commands ignore SIGINT and SIGQUIT.
    signal_all(SIGTERM);
}

fn signal_all(number: c_int) {
    let targets = RUNNING.iter().map(|place| place.load(Ordering::SeqCst));
    targets.filter(|target| *target != 0).for_each(|target| send_signal(target, number));
}

/// True if the program is ending: a signal was passed on to commands, or [`end_commands`] was called.
pub fn is_ending() -> bool {
    SIGNALLED.load(Ordering::SeqCst) != 0
}

/// Sends a signal, unless the command has just ended.
fn send_signal(target: i32, number: c_int) {
    // SAFETY: the call has no preconditions. `errno` is restored, as a handler must.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::kill(target, number);
        *errno = before;
    }
}

/// The descriptor of an open file of Lua, as a Lua function.
///
/// # Safety
///
/// Must only be called by Lua, and with an open file.
unsafe extern "C-unwind" fn fileno(raw: *mut lua_State) -> c_int {
    // SAFETY: this userdata starts with a `FILE *`, as C modules rely on, and Lua calls this with room for twenty
    // values.
    unsafe {
        let file = *ffi::lua_touserdata(raw, 1).cast::<*mut libc::FILE>();
        ffi::lua_pushnumber(raw, f64::from(libc::fileno(file)));
        1
    }
}
