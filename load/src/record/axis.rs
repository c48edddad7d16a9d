//! The timelines of several runs on one axis, which begins with the first run.
//!
//! A row of the sum ends where a run begins or ends, so that the same runs took place during all of it; a row too short
//! for a meaningful rate becomes part of its neighbour. Runs one after another keep their rows; rows of overlapping
//! runs rarely coincide and are divided in proportion to time.

use onrush_stats::timeline::{ROWS_MAX, RowFigures, SECOND_NS};

use super::sources::Segment;
use super::{Row, RunFacts};

/// The fraction of the usual length below which a row joins its neighbour: a tenth.
const SLIVER_PART: u128 = 10;

/// The figures of a span of time. Times are nanoseconds since 1970.
struct Part {
    from_ns: u128,
    until_ns: u128,
    figures: RowFigures,
}

/// The rows of these runs together, which took place in these segments.
pub(super) fn rows(runs: &[RunFacts], segments: &[Segment]) -> Vec<Row> {
    let parts: Vec<Part> = runs.iter().flat_map(parts_of).collect();
    let mut cells = cells(segments, &parts);
    for part in parts {
        part.spread(&mut cells);
    }
    let first_ns = segments.first().map_or(0, |segment| segment.from_ns);
    let since = |at_ns: u128| u64::try_from(at_ns - first_ns).unwrap_or(u64::MAX);
    let row = |(Segment { from_ns, until_ns, runs, .. }, figures): &(Segment, RowFigures)| Row {
        runs: Some(*runs),
        ..Row::of(figures, since(*from_ns), since(*until_ns))
    };
    cells.iter().map(row).collect()
}

/// The rows of a run on the common axis.
fn parts_of(run: &RunFacts) -> impl Iterator<Item = Part> {
    let start_ns = run.start_ns();
    run.rows().map(move |(from_ns, until_ns, figures)| Part {
        from_ns: start_ns + u128::from(from_ns),
        until_ns: start_ns + u128::from(until_ns),
        figures: figures.clone(),
    })
}

/// The rows of the sum, still empty: segments divided into rows of equal length, starting again after each time without
/// a run.
fn cells(segments: &[Segment], parts: &[Part]) -> Vec<(Segment, RowFigures)> {
    let longest_ns = parts.iter().map(|part| part.until_ns - part.from_ns).max().unwrap_or(0);
    let mut length_ns = u128::from(SECOND_NS);
    // A row that has absorbed others is up to half longer than usual.
    while length_ns * 3 / 2 < longest_ns {
        length_ns *= 2;
    }
    let mut cells = cut(segments, length_ns);
    while cells.len() > ROWS_MAX.max(2 * segments.len()) {
        length_ns *= 2;
        cells = cut(segments, length_ns);
    }
    without_slivers(cells, length_ns).into_iter().map(|cell| (cell, RowFigures::default())).collect()
}

/// Joins rows far shorter than `length_ns` with an adjacent neighbour; the longer of the two sets the number of runs.
fn without_slivers(cells: Vec<Segment>, length_ns: u128) -> Vec<Segment> {
    let mut joined: Vec<Segment> = Vec::with_capacity(cells.len());
    for cell in cells {
        let is_sliver = |one: &Segment| one.length_ns() < length_ns / SLIVER_PART;
        let joins = |last: &&mut Segment| {
            let touches = last.until_ns == cell.from_ns;
            let fits = last.length_ns() + cell.length_ns() <= length_ns * 3 / 2;
            touches && fits && (is_sliver(last) || is_sliver(&cell))
        };
        match joined.last_mut().filter(joins) {
            Some(last) => {
                let longer = if cell.length_ns() > last.length_ns() { cell } else { *last };
                *last = Segment { from_ns: last.from_ns, until_ns: cell.until_ns, ..longer };
            }
            None => joined.push(cell),
        }
    }
    joined
}

fn cut(segments: &[Segment], length_ns: u128) -> Vec<Segment> {
    let mut cells = Vec::new();
    let mut began_ns = 0;
    let mut reached_ns = 0;
    for segment in segments {
        if segment.from_ns != reached_ns {
            began_ns = segment.from_ns;
        }
        reached_ns = segment.until_ns;
        let mut from_ns = segment.from_ns;
        loop {
            let next_ns = began_ns + ((from_ns - began_ns) / length_ns + 1) * length_ns;
            let until_ns = next_ns.min(segment.until_ns);
            cells.push(Segment { from_ns, until_ns, ..*segment });
            from_ns = until_ns;
            if from_ns == segment.until_ns || cells.len() > ROWS_MAX.max(2 * segments.len()) {
                break;
            }
        }
    }
    cells
}

impl Part {
    /// Divides it among the cells that it overlaps.
    fn spread(mut self, cells: &mut [(Segment, RowFigures)]) {
        let last = cells.len().saturating_sub(1);
        // A part without length belongs to the cell that ends there.
        let index = cells.partition_point(|(cell, _)| cell.until_ns <= self.from_ns && cell.until_ns < self.until_ns);
        for (cell, figures) in &mut cells[index.min(last)..] {
            if cell.until_ns >= self.until_ns {
                *figures += &self.figures;
                return;
            }
            let from_ns = self.from_ns.max(cell.from_ns);
            let (here_ns, left_ns) = (cell.until_ns - from_ns, self.until_ns - self.from_ns);
            *figures += &self.figures.take_share(here_ns as u64, left_ns as u64);
            self.from_ns = cell.until_ns;
        }
    }
}
