//! `os.execute` and `io.popen`, whose commands a signal ends.
//!
//! The C library's functions do not do here: `system` ignores SIGINT and SIGQUIT in the whole process while a command
//! runs, and commands of a worker's thread inherit its blocked signals. So a command gets its own process group, which
//! gets the signals that end the program. If standard input is a terminal, the group is ours, so that the command may
//! read from it and the terminal's keys reach it; other signals then reach the shell alone.

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
use onrush_text::reason;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level;

/// The commands that run, as `kill` takes them: groups are negative; zero is free. Beyond that many, commands get no
/// signals.
static RUNNING: [AtomicI32; 256] = [const { AtomicI32::new(0) }; 256];
/// The signal that came last and, in the higher bits, how many have come. Zero: none.
static SIGNALLED: AtomicU32 = AtomicU32::new(0);

/// Commands that are being started: they do not count as running yet.
static STARTING: AtomicU32 = AtomicU32::new(0);
/// How long the end of the program waits for these.
const START_MAX: Duration = Duration::from_secs(1);

/// The status for which `system` has no command: it could not be started.
const NOT_STARTED: i32 = -1;

/// Adds the host functions. If `ends_for_good`, no command begins after a signal: the thread is about to end, and must
/// not wait for another one. Only `done` is called after a signal.
pub fn add(lua: &Lua, native: &Table, ends_for_good: bool) -> mlua::Result<()> {
    let ending = move || Some(SIGNALLED.load(Ordering::SeqCst)).filter(|&last| ends_for_good && last != 0);
    let execute = move |_: &Lua, command: LuaString| {
        // As if the signal had ended it.
        Ok(ending().map_or_else(|| execute(&command.as_bytes()), number_of))
    };
    native.raw_set("execute", lua.create_function(execute)?)?;
    // With the descriptor of the script's file; the last one of several is meant.
    let piped: Rc<RefCell<Vec<(c_int, RunningCommand)>>> = Rc::default();
    let of = Rc::clone(&piped);
    let popen = move |_: &Lua, (file, command, is_read): (i32, LuaString, bool)| {
        let mut piped = of.borrow_mut();
        // Some files are never closed.
        piped.retain_mut(|(_, running)| !matches!(running.child.try_wait(), Ok(Some(_))));
        let command = if ending().is_some() { b":".to_vec() } else { command.as_bytes().to_vec() };
        Ok(match pipe(file, &command, is_read) {
            Ok(running) => {
                piped.push((file, running));
                (None, None)
            }
            Err(error) => (Some(reason(&error)), error.raw_os_error()),
        })
    };
    native.raw_set("popen", lua.create_function(popen)?)?;
    let wait = move |_: &Lua, file: i32| {
        let mut piped = piped.borrow_mut();
        let place = piped.iter().rposition(|(known, _)| *known == file);
        drop(place.map(|place| piped.remove(place).1.wait()));
        Ok(())
    };
    native.raw_set("wait", lua.create_function(wait)?)?;
    // SAFETY: the function only pushes a number, for which every C function has room.
    native.raw_set("fileno", unsafe { lua.create_c_function(fileno)? })
}

/// Runs a command; returns its status as `wait` has it.
fn execute(command: &[u8]) -> i32 {
    start(&mut shell(command)).and_then(RunningCommand::wait).unwrap_or(NOT_STARTED)
}

/// Starts a command with one end of a pipe, and puts the other one into the place of an open file.
fn pipe(file: c_int, command: &[u8], is_read: bool) -> io::Result<RunningCommand> {
    let mut shell = shell(command);
    if is_read {
        shell.stdout(Stdio::piped())
    } else {
        shell.stdin(Stdio::piped())
    };
    let mut running = start(&mut shell)?;
    let child = &mut running.child;
    let ours: Option<OwnedFd> =
        if is_read { child.stdout.take().map(OwnedFd::from) } else { child.stdin.take().map(OwnedFd::from) };
    let ours = ours.expect("it was asked for");
    // SAFETY: both are open: `file` belongs to the script's file, and is replaced at once.
    if unsafe { libc::dup3(ours.as_raw_fd(), file, libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(running)
}

/// The command as the C library would run it: up to the first NUL.
fn shell(command: &[u8]) -> Command {
    let command = command.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(OsStr::from_bytes(command));
    shell
}

/// A command that runs.
struct RunningCommand {
    child: Child,
    /// Its place in [`RUNNING`].
    place: Option<&'static AtomicI32>,
}

/// Starts a command, to which signals are passed on.
fn start(command: &mut Command) -> io::Result<RunningCommand> {
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
        // It came while the command began.
        pass_on_again();
    }
    running
}

/// Does some work with no signal blocked in this thread: a command inherits its parent's blocked signals.
fn with_no_signal_blocked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are plain data that the calls fill in, and the thread's own one is put back.
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
    /// Notes that a command runs, in a process group of its own or not.
    fn new(child: Child, is_own: bool) -> Self {
        let id = child.id() as i32;
        let target = if is_own { -id } else { id };
        let take = |place: &&AtomicI32| place.compare_exchange(0, target, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        Self { child, place: RUNNING.iter().find(take) }
    }

    /// Waits for its end; returns its status.
    fn wait(mut self) -> io::Result<i32> {
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

/// From now on, passes the signals that end the program on to its commands. An unhandled signal is left as it is.
fn pass_signals_on() {
    for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|number| is_handled(*number)) {
        let pass_on = move || {
            let count = SIGNALLED.load(Ordering::SeqCst) >> 8;
            SIGNALLED.store(count.wrapping_add(1) << 8 | number as u32, Ordering::SeqCst);
            signal_all(number);
        };
        // SAFETY: the action only reads and writes atomic numbers and calls `kill`, which a signal handler may.
        // If there can be no action, the program ends and its commands go on.
        drop(unsafe { low_level::register(number, pass_on) });
    }
}

/// The number of a signal in [`SIGNALLED`].
fn number_of(signalled: u32) -> c_int {
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

/// Passes the last signal on again: one that comes while a shell starts a program may reach the shell alone.
fn pass_on_again() {
    match SIGNALLED.load(Ordering::SeqCst) {
        0 => {}
        last => signal_all(number_of(last)),
    }
}

/// Ends all commands, even ones that are only being started, because the program is about to end. No thread begins
/// another one.
pub fn end() {
    // A signal that came is known.
    let _ = SIGNALLED.compare_exchange(0, 1 << 8 | SIGTERM as u32, Ordering::SeqCst, Ordering::SeqCst);
    let start = Instant::now();
    while STARTING.load(Ordering::SeqCst) > 0 && start.elapsed() < START_MAX {
        std::thread::yield_now();
    }
    // Commands in the background ignore SIGINT and SIGQUIT.
    signal_all(SIGTERM);
}

fn signal_all(number: c_int) {
    let targets = RUNNING.iter().map(|place| place.load(Ordering::SeqCst));
    targets.filter(|target| *target != 0).for_each(|target| signal(target, number));
}

/// True if the program ends because of a signal that commands got.
pub fn is_ending() -> bool {
    SIGNALLED.load(Ordering::SeqCst) != 0
}

/// Sends a signal; a command that has just ended gets none.
fn signal(target: i32, number: c_int) {
    // SAFETY: the call has no preconditions. `errno` is put back, as a handler must.
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
    // SAFETY: such a userdata begins with a `FILE *`, as C modules rely on, and Lua calls this with room for twenty
    // values.
    unsafe {
        let file = *ffi::lua_touserdata(raw, 1).cast::<*mut libc::FILE>();
        ffi::lua_pushnumber(raw, f64::from(libc::fileno(file)));
        1
    }
}
