//! Starts a program on given processors, and reports its CPU time and memory.
//!
//! ```text
//! meter run FILE CPUS PROGRAM...   waits for the program and writes "CPU_US RSS_KIB" into FILE
//! meter hold CPUS PROGRAM...       becomes the program; it ends with the process that started it
//! ``` CPUS is a list such as `0` or `0,1`. CPU time is user plus system time of all threads, from start to end. Memory
//! is the peak. The descriptor limit is raised to the maximum, for all programs alike.

use std::env;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, ExitStatus};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

fn main() -> io::Result<ExitCode> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", file, cpus, program, ref arguments @ ..] => {
            prepare(cpus)?;
            let (status, used) = run(Command::new(program).args(arguments))?;
            fs::write(file, used)?;
            Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
        }
        ["hold", cpus, program, ref arguments @ ..] => {
            prepare(cpus)?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            Err(Command::new(program).args(arguments).exec())
        }
        _ => Err(io::Error::other("usage: meter run FILE CPUS PROGRAM... | meter hold CPUS PROGRAM...")),
    }
}

/// Sets the processors and the descriptor limit of this process, which the program inherits.
fn prepare(cpus: &str) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.split(',') {
        set.set(cpu.parse().map_err(|_| io::Error::other(format!("{cpu} is no number of a processor")))?);
    }
    sched_setaffinity(None, &set)?;
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(())
}

/// Runs a program to its end, and returns its usage in the format of the file.
fn run(command: &mut Command) -> io::Result<(ExitStatus, String)> {
    // SAFETY: only a system call happens between fork and exec.
    let command = unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?)) };
    let child = command.spawn()?;
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both pointers are valid for the call, and the child is ours and has not been waited for.
    if unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroes are a valid value, and the call has filled it in.
    let usage = unsafe { usage.assume_init() };
    let microseconds = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let cpu_us = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
    let status = std::os::unix::process::ExitStatusExt::from_raw(status);
    Ok((status, format!("{cpu_us} {}\n", usage.ru_maxrss)))
}
