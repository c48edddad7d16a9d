//! `make pictures`: draws the terminal output of real runs as the SVG files in `docs/pictures/`.
//!
//! Each picture is the output of one command line against the embedded target, unchanged except for the wrapping of
//! long lines.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

/// Directory of the pictures, from the root of the repository.
const DIRECTORY: &str = "docs/pictures";
/// Maximum number of characters per line.
const COLUMNS: usize = 100;
/// Width of a character at font size 13, in hundredths of a pixel.
const CHARACTER: usize = 783;
/// Height of a line, and margin around the text, in pixels.
const LINE: usize = 18;
const MARGIN: usize = 14;

/// A picture: its name, an optional preparatory command line that is not shown, and the command line shown. `URL`
/// stands for the target's URL without the final slash.
struct Picture {
    name: &'static str,
    before: &'static [&'static str],
    shown: &'static [&'static str],
}

const PICTURES: [Picture; 3] = [
    Picture { name: "report", before: &[], shown: &["-R", "2000", "-c20", "-d10s", "URL/freeze?every=4s&ms=400"] },
    Picture {
        name: "compare",
        before: &[
            "vs",
            "-c8",
            "-d1s",
            "--rounds",
            "5",
            "--out",
            "servers",
            "URL/capacity?rps=4000",
            "URL/capacity?rps=4400",
        ],
        shown: &["compare", "servers"],
    },
    Picture { name: "find-max", before: &[], shown: &["--find-max", "p99<20ms", "URL/capacity?rps=5000"] },
];

/// Draws all pictures.
///
/// # Errors
///
/// If a run fails, or a file cannot be written.
pub fn run() -> io::Result<ExitCode> {
    let build = ["build", "--release", "--package", "onrush", "--bin", "onrush"];
    if !crate::cargo().args(build).status()?.success() {
        return Ok(ExitCode::FAILURE);
    }
    let directory = crate::root().join(DIRECTORY);
    let scratch = crate::target()?.join("pictures");
    for picture in &PICTURES {
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        fs::create_dir_all(&scratch)?;
        let (server, url) = ServeProcess::start()?;
        if !picture.before.is_empty() {
            record_output(&scratch, picture.before, &url)?;
        }
        let text = record_output(&scratch, picture.shown, &url)?;
        drop(server);
        fs::write(directory.join(picture.name).with_extension("svg"), svg(&text))?;
        println!("{text}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The program as installed by users.
fn program() -> io::Result<PathBuf> {
    Ok(crate::target()?.join("release/onrush"))
}

/// The embedded target in a separate process, which is killed when this is dropped.
struct ServeProcess(Child);

impl ServeProcess {
    /// Starts the target on a free port, and returns its URL without the final slash.
    fn start() -> io::Result<(Self, String)> {
        let serve = ["serve", "--addr", "127.0.0.1:0"];
        let mut server = Self(Command::new(program()?).args(serve).stdout(Stdio::piped()).spawn()?);
        let mut line = String::new();
        if let Some(stdout) = &mut server.0.stdout {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        let url = url.ok_or_else(|| io::Error::other("the server did not say where it listens"))?;
        Ok((server, url.trim_end_matches('/').to_owned()))
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        // Both fail only if the server has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Terminal output of a command line, including the line itself.
fn record_output(scratch: &Path, words: &[&str], url: &str) -> io::Result<String> {
    let words: Vec<String> = words.iter().map(|word| word.replace("URL", url)).collect();
    // The shell joins both streams in the order of writing.
    let output = Command::new("sh")
        .args(["-c", "exec \"$@\" 2>&1", "sh"])
        .arg(program()?)
        .args(&words)
        .current_dir(scratch)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stdout))));
    }
    let shown: Vec<String> = words.iter().map(|word| quote_word(word)).collect();
    Ok(format!("$ onrush {}\n{}", shown.join(" "), String::from_utf8_lossy(&output.stdout).trim_end()))
}

/// Quotes a word for a shell.
fn quote_word(word: &str) -> String {
    if word.contains(['&', '<', '>', '?']) { format!("'{word}'") } else { word.to_owned() }
}

/// Draws a text as a terminal.
fn svg(text: &str) -> String {
    let lines: Vec<(&str, String)> = text.lines().flat_map(wrap_line).collect();
    let (width, height) = (COLUMNS * CHARACTER / 100 + 2 * MARGIN, lines.len() * LINE + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', monospace\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#0d1117\"/>\n"
    );
    for (index, (colour, line)) in lines.iter().enumerate() {
        let y = MARGIN + (index + 1) * LINE - 5;
        let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        svg += &format!("<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{colour}\" xml:space=\"preserve\">{line}</text>\n");
    }
    svg + "</svg>\n"
}

/// Wraps a line at spaces. Each piece keeps the colour of the whole line.
fn wrap_line(line: &str) -> Vec<(&'static str, String)> {
    let colour = match line.split_once([':', ' ']) {
        Some(("$", _)) => "#7ee787",
        Some(("verdict", _)) => "#79c0ff",
        Some(("note", _)) => "#e3b341",
        _ => "#e6edf3",
    };
    let mut pieces = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let is_full =
            pieces.last().is_some_and(|piece| piece.chars().count() + word.trim_end().chars().count() > COLUMNS);
        if is_full {
            pieces.push("    ".to_owned());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(word);
        }
    }
    pieces.into_iter().map(|piece| (colour, piece)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_wrap_at_blanks_losslessly() {
        let line = format!("note: {}", "word ".repeat(60));
        let pieces = wrap_line(line.trim_end());
        assert!(pieces.len() > 2);
        for (colour, piece) in &pieces {
            assert_eq!(*colour, "#e3b341");
            assert!(piece.trim_end().chars().count() <= COLUMNS, "{piece}");
        }
        let words: Vec<String> =
            pieces.iter().flat_map(|(_, piece)| piece.split_whitespace().map(str::to_owned)).collect();
        assert_eq!(words.join(" "), line.trim_end());
    }

    #[test]
    fn xml_characters_are_escaped() {
        let svg = svg("$ onrush 'http://h/?a&b<c'");
        assert!(svg.contains("?a&amp;b&lt;c'</text>"), "{svg}");
        assert!(svg.contains("fill=\"#7ee787\""));
    }
}
