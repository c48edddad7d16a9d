//! The manual page, in the man macros common to groff and mandoc.

use std::time::UNIX_EPOCH;

use super::super::{flags, help};
use super::{CompletionWord, Described, KnownProgram, help_on_one_line};

pub(super) fn manual_page(program: &KnownProgram) -> String {
    let mut text = format!(
        ".\\\" Written by onrush --generate man.\n.TH ONRUSH 1 \"{}\" \"onrush {}\" \"User Commands\"\n",
        page_date(),
        env!("CARGO_PKG_VERSION")
    );
    text += ".SH NAME\nonrush \\- HTTP load generator with the command line, report and scripts of wrk\n";
    text += ".SH SYNOPSIS\n.B onrush\n.RI [ options ]\n.I URL\n";
    for command in &program.0 {
        text += &format!(".br\n.B onrush {}\n.RI [ options ]\n", escape_roff(command.name));
        text += if command.word == CompletionWord::Text { "" } else { ".I ARGUMENT\n\\&...\n" };
    }
    text += ".SH DESCRIPTION\n\
             onrush puts load on an HTTP server and reports how many requests it answered, and how quickly.\n\
             It holds a rate if asked to, says what limited the run, and writes its results to files.\n\
             Called as\n.BR wrk ,\n.B wrk-cmm\nor\n.B wrk2\n(through a link), it behaves like that tool.\n";
    text += &format_paragraphs(help::NOTATION);
    for section in &flags::SECTIONS {
        text += &format!(".SH {}\n", quote_argument(&format!("OPTIONS: {}", section.title.to_uppercase())));
        text += &entries(section.flags.iter().map(|flag| &flag.described));
    }
    text += ".SH COMMANDS\n";
    for command in &program.0 {
        text += &format!(".SS {}\n", quote_argument(&format!("onrush {}: {}", command.name, command.about)));
        let (above, below) = split_help(&command.help);
        text += &format_first_paragraph(&format_paragraphs(&above));
        text += &entries(&command.options);
        text += &format_paragraphs(&below);
    }
    text += ".SH EXIT STATUS\n";
    text += &format_first_paragraph(&format_verbatim(help::EXIT_CODES));
    text += ".SH EXAMPLES\n";
    text += &format_first_paragraph(&format_verbatim(help::EXAMPLES));
    text += ".SH MESSAGES\nSome messages end with a place in the documentation. What is there, in short:\n";
    for (place, answer) in MESSAGES {
        text += &format!(".TP\n.I {}\n{}\n", escape_roff(place), format_text_line(answer));
    }
    text += ".SH DOCUMENTATION\n\
             The pages are in\n\
             .I share/doc/onrush\n\
             below the prefix of the installation, which is\n.I /usr\nfor packages and\n.I /usr/local\nfor\n.BR \"make install\" ,\n\
             and in the archive of a release.\n\
             With the image and with\n.B cargo install\ncome none: they are in the source, which cargo unpacks in\n\
             .IR \\(ti/.cargo/registry/src .\n\
             .TP\n.I README.md\nwhat onrush is, and a tour of a minute\n";
    for (page, about) in PAGES {
        text += &format!(".TP\n.I docs/{}\n{}\n", escape_roff(page), escape_roff(about));
    }
    text += ".SH SEE ALSO\n.BR wrk (1),\n.BR curl (1),\n.BR ss (8)\n";
    text
}

/// Places that messages refer to, each with the answer to the question behind that message.
const MESSAGES: [(&str, &str); 4] = [
    (
        "docs/kubernetes.md",
        "kubectl needs the right to get, list, create, patch and delete jobs, services, secrets and configmaps, to get, list \
         and watch pods and pods/log, and to get and create pods/exec, all in one namespace. The page has them as a Role.",
    ),
    (
        "docs/measuring.md",
        "Without a rate, wrk adds latencies that it never measured, for every response that took at least twice the \
         average. onrush does not, so its figures are lower. With -v it prints wrk's mean beside its own, to compare \
         with old results. What users of a busy server experience is measured with a rate (-R).",
    ),
    (
        "docs/troubleshooting.md#io_uring-is-not-used",
        "epoll measures the same, and takes more processor time at high rates. -v tells why io_uring is not used: the \
         kernel is older than 6.1, the setting kernel.io_uring_disabled is not 0, or a filter forbids it. A container's \
         seccomp profile must allow io_uring_setup, io_uring_enter and io_uring_register.",
    ),
    (
        "docs/troubleshooting.md#the-certificate-is-not-accepted",
        "-k accepts any certificate, which is right for a target of your own. If a browser accepts this one, the server \
         probably leaves out an intermediate certificate, which browsers fetch elsewhere: openssl s_client -connect \
         HOST:443 -showcerts shows what it sends. Add the missing one to the server's file, or name it with --cacert.",
    ),
];

/// Documents shipped with the manual page, and their subjects.
pub(super) const PAGES: [(&str, &str); 34] = [
    ("tour.md", "a tour of ten minutes"),
    ("other-tools.md", "coming from other tools"),
    ("capacity.md", "how to find the highest load"),
    ("lab.md", "how to compare servers, settings and loads"),
    ("ci.md", "how to make a pipeline fail"),
    ("login.md", "how to log in"),
    ("containers.md", "how to run in a container"),
    ("machines.md", "how to load from several machines"),
    ("slurm.md", "how to load from the nodes of Slurm or MPI"),
    ("kubernetes.md", "how to load from a Kubernetes cluster"),
    ("troubleshooting.md", "what notes and errors mean"),
    ("command-line.md", "every option, with examples"),
    ("report.md", "every figure of the report"),
    ("conditions.md", "what gates and searches compare"),
    ("metrics.md", "every figure that has a name"),
    ("output.md", "the files with results"),
    ("requests.md", "lists, placeholders, forms and checks"),
    ("scripting.md", "Lua scripts"),
    ("http2.md", "HTTP/2"),
    ("tls.md", "TLS"),
    ("experiments.md", "experiments of many runs"),
    ("tables.md", "tables of results"),
    ("compare.md", "whether results differ"),
    ("search-results.md", "what a search found"),
    ("machines-reference.md", "runs on several machines"),
    ("sockets.md", "samples of sockets"),
    ("host-settings.md", "settings of the host that an experiment changes"),
    ("target.md", "the embedded target"),
    ("robustness.md", "what servers can do wrong"),
    ("benchmarks.md", "what onrush costs beside other tools"),
    ("measuring.md", "what is measured, and what the limit was"),
    ("pacing.md", "when requests are sent, and how times are taken"),
    ("statistics.md", "the statistics behind the figures"),
    ("search.md", "how a search works"),
];

/// The date of the page: `SOURCE_DATE_EPOCH` when packaging, else today.
fn page_date() -> String {
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let now = || UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() as i64);
    let moment = time::OffsetDateTime::from_unix_timestamp(epoch.unwrap_or_else(now)).ok();
    moment.map_or_else(String::new, |moment| moment.date().to_string())
}

/// The entries for options, each with its help.
fn entries<'a>(options: impl IntoIterator<Item = &'a Described>) -> String {
    let entry = |option: &Described| {
        format!(".TP\n{}\n{}\n", format_spelling(option), format_text_line(&help_on_one_line(option.help)))
    };
    options.into_iter().map(entry).collect()
}

/// The spelling of an option, with names in bold and values in italics.
fn format_spelling(option: &Described) -> String {
    let bold = |text: &str| format!("\\fB{}\\fR", escape_roff(text));
    let short = option.spelling.short.map(|letter| bold(&format!("-{letter}")) + ", ").unwrap_or_default();
    let value = option.spelling.value.map_or(String::new(), |value| {
        let gap = if value.starts_with('[') { "" } else { " " };
        format!("{gap}\\fI{}\\fR", escape_roff(value))
    });
    format!("{short}{}{value}", bold(&format!("--{}", option.spelling.long)))
}

/// The help text of a command, split into what comes before and after its options.
fn split_help(help: &str) -> (String, String) {
    let is_option = |paragraph: &&str| paragraph.trim_start().starts_with('-') && paragraph.starts_with("  ");
    let mut parts = help.trim_end().split("\n\n");
    let above: Vec<&str> = parts.by_ref().take_while(|paragraph| !is_option(paragraph)).collect();
    (above.join("\n\n"), parts.collect::<Vec<_>>().join("\n\n"))
}

/// Formats paragraphs. Indented paragraphs, and those that start with the usage of a command, keep
/// their line breaks.
fn format_paragraphs(text: &str) -> String {
    let one = |paragraph: &str| {
        let keeps_lines = paragraph.lines().any(|line| line.starts_with(' ')) || paragraph.starts_with("Usage: ");
        if keeps_lines {
            format_verbatim(paragraph)
        } else {
            format!(".PP\n{}\n", format_text_line(&help_on_one_line(paragraph)))
        }
    };
    text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()).map(one).collect()
}

/// Formats a paragraph after a heading, which already starts a paragraph.
fn format_first_paragraph(paragraph: &str) -> String {
    paragraph.strip_prefix(".PP\n").unwrap_or(paragraph).to_owned()
}

/// Formats lines that keep their line breaks.
fn format_verbatim(text: &str) -> String {
    let lines: String = text.trim_matches('\n').lines().map(|line| format_text_line(line) + "\n").collect();
    format!(".PP\n.nf\n{lines}.fi\n")
}

/// Formats a line of text. A leading dot or quotation mark is escaped, because it would start a
/// command of roff.
fn format_text_line(text: &str) -> String {
    let text = escape_roff(text);
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// Quotes an argument of a macro.
fn quote_argument(text: &str) -> String {
    format!("\"{}\"", escape_roff(text).replace('"', "\\(dq"))
}

fn escape_roff(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            other => escaped.push(other),
        }
    }
    escaped
}
