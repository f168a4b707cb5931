//! What is wrong with a file, where, and what to do: all of it at once.

use std::fmt;
use std::sync::Arc;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceSpan,
};
use serde::Serialize;

/// Most problems that are reported for one file; the rest are counted.
pub const MAX_PROBLEMS: usize = 50;

/// A place in the text: characters, not bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// A problem before lines and columns are known.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) at: At,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: String,
    /// Another place that has to do with it, and how.
    pub(crate) also: Option<(At, String)>,
}

/// Collects problems, up to a bound.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    dropped: usize,
}

impl Findings {
    pub(crate) fn push(&mut self, finding: Finding) {
        if self.list.len() < MAX_PROBLEMS {
            self.list.push(finding);
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn add(
        &mut self,
        at: At,
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Finding {
            at,
            code,
            message: message.into(),
            help: help.into(),
            also: None,
        });
    }

    /// Whether further problems would only be counted: a reason to save work on their texts.
    pub(crate) fn full(&self) -> bool {
        self.list.len() >= MAX_PROBLEMS
    }

    /// Counts a problem whose text isn't worth making.
    pub(crate) fn count(&mut self) {
        self.dropped += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn into_report(mut self, name: &str, text: &str) -> Report {
        self.list.sort_by_key(|finding| finding.at.start);
        let text: Arc<str> = Arc::from(text);
        let places = Places::new(&text);
        let source = Arc::new(NamedSource::new(name, SharedText(Arc::clone(&text))));
        let problems = self
            .list
            .into_iter()
            .map(|finding| {
                let (line, column) = places.line_column(finding.at.start);
                Problem {
                    file: name.to_owned(),
                    line,
                    column,
                    code: finding.code,
                    message: finding.message,
                    help: finding.help,
                    span: places.bytes(finding.at),
                    also: finding.also.map(|(at, label)| (places.bytes(at), label)),
                    source: Arc::clone(&source),
                }
            })
            .collect();
        Report {
            problems,
            dropped: self.dropped,
        }
    }
}

/// Text that all problems of a report share.
#[derive(Debug)]
struct SharedText(Arc<str>);

impl miette::SourceCode for SharedText {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn miette::SpanContents<'a> + 'a>, miette::MietteError> {
        miette::SourceCode::read_span(&*self.0, span, before, after)
    }
}

/// From character positions to lines, columns and bytes, through a mark at every line.
struct Places<'a> {
    text: &'a str,
    /// Character and byte position of every line's beginning.
    lines: Vec<(usize, usize)>,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        let mut lines = vec![(0, 0)];
        for (character, (byte, c)) in text.char_indices().enumerate() {
            if c == '\n' {
                lines.push((character + 1, byte + 1));
            }
        }
        Self { text, lines }
    }

    fn line(&self, character: usize) -> usize {
        self.lines.partition_point(|(first, _)| *first <= character) - 1
    }

    /// Both from 1.
    fn line_column(&self, character: usize) -> (usize, usize) {
        let line = self.line(character);
        (line + 1, character - self.lines[line].0 + 1)
    }

    fn byte(&self, character: usize) -> usize {
        let (first, byte) = self.lines[self.line(character)];
        let rest = &self.text[byte..];
        rest.char_indices()
            .nth(character - first)
            .map_or(self.text.len(), |(offset, _)| byte + offset)
    }

    /// The part of the place that lies on its first line, which is what a snippet can show.
    fn bytes(&self, at: At) -> SourceSpan {
        let start = self.byte(at.start);
        let end = self.byte(at.start + at.len.max(1)).max(start);
        let line = self.text[start..end]
            .split(['\n', '\r'])
            .next()
            .unwrap_or("");
        (start, line.trim_end().len()).into()
    }
}

/// One thing that is wrong with a file.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// The file's name, as given to [`parse`](crate::Topology::parse).
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What kind of problem, in a form that stays the same: `unknown-field`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    #[serde(skip)]
    span: SourceSpan,
    #[serde(skip)]
    also: Option<(SourceSpan, String)>,
    #[serde(skip)]
    source: Arc<NamedSource<SharedText>>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.help))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&*self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let main = LabeledSpan::new_primary_with_span(Some("here".to_owned()), self.span);
        let also = self
            .also
            .iter()
            .map(|(span, label)| LabeledSpan::new_with_span(Some(label.clone()), *span));
        Some(Box::new([main].into_iter().chain(also)))
    }
}

/// Everything that is wrong with a topology file.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    problems: Vec<Problem>,
    dropped: usize,
}

impl Report {
    /// The problems, in the order of the file; at most [`MAX_PROBLEMS`].
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many more there are than [`problems`](Self::problems) lists.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// All problems with the lines of the file they are about, for people to read; with colours
    /// and box characters if `fancy`, else in plain ASCII.
    #[must_use]
    pub fn render(&self, fancy: bool) -> String {
        let theme = if fancy {
            GraphicalTheme::unicode()
        } else {
            ascii()
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_links(false)
            .with_width(100);
        let mut out = String::new();
        for problem in &self.problems {
            if handler.render_report(&mut out, problem).is_err() {
                out += &format!(
                    "{}:{}:{}: {problem}\n",
                    problem.file, problem.line, problem.column
                );
            }
        }
        if self.dropped > 0 {
            out += &format!("... and {} more\n", self.dropped);
        }
        out
    }
}

fn ascii() -> GraphicalTheme {
    let mut theme = GraphicalTheme::none();
    theme.characters = miette::ThemeCharacters::ascii();
    theme
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            let Problem {
                file,
                line,
                column,
                message,
                help,
                ..
            } = problem;
            write!(
                f,
                "{separator}{file}:{line}:{column}: {message}\n  help: {help}"
            )?;
        }
        if self.dropped > 0 {
            write!(f, "\n... and {} more", self.dropped)?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

impl Diagnostic for Report {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(
            self.problems
                .iter()
                .map(|problem| problem as &dyn Diagnostic),
        ))
    }
}
