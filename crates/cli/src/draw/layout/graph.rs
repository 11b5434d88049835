//! One scope's body as an acyclic graph: what is laid out, and which way round each edge is drawn.

use std::collections::HashMap;

use super::super::EdgeStyle;
use super::super::scopes::{End, Link};
use super::rank::{self, Arc};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    Node(usize),
    /// Where edges from the scope's heading start.
    Entry,
    /// Where edges back to the heading gather.
    Return,
    /// Ends an edge back to this earlier node.
    Note(usize),
}

pub struct Line<'a> {
    pub link: &'a Link,
    pub arc: Arc,
    /// The link runs against its arc.
    pub turned: bool,
    /// A back edge, whichever way its arc is laid out.
    pub back: bool,
}

/// The items at the ends of a link; `None` is the frame.
type Ends = (Option<usize>, Option<usize>);

#[derive(Default)]
pub struct Graph<'a> {
    pub items: Vec<Item>,
    pub lines: Vec<Line<'a>>,
    /// Links from a box to itself, drawn at its side.
    pub loops: Vec<(usize, &'a Link)>,
}

impl<'a> Graph<'a> {
    /// `notes` ends edges that go back in a note instead of leading them up again.
    pub fn new(members: &[usize], links: &'a [Link], notes: bool) -> Self {
        let local: HashMap<usize, usize> = members.iter().enumerate().map(|(index, &node)| (node, index)).collect();
        let mut graph = Self { items: members.iter().map(|&node| Item::Node(node)).collect(), ..Self::default() };
        let (mut backward, mut outer) = (Vec::new(), Vec::new());
        for link in links {
            let find = |end: End| match end {
                End::Node(node) => local.get(&node).copied(),
                End::Frame => None,
            };
            match (find(link.from), find(link.to)) {
                (Some(from), Some(to)) if from != to && link.style != EdgeStyle::Back => {
                    graph.add(link, Arc { from, to });
                }
                (Some(from), Some(to)) => backward.push((link, Arc { from, to })),
                ends => outer.push((link, ends)),
            }
        }
        graph.break_cycles();
        if notes {
            graph.note_turned();
        }
        for (link, arc) in backward {
            if notes {
                graph.add(link, arc);
                graph.note_last();
            } else if arc.from == arc.to {
                graph.loops.push((arc.from, link));
            } else {
                graph.add(link, arc.turned());
                graph.turn_last();
            }
        }
        graph.break_cycles();
        graph.add_outer(outer);
        graph
    }

    /// The layer of each item. Entry and return keep a layer to themselves, above and below all else.
    pub fn ranks(&self) -> Vec<usize> {
        let outer = |item: usize| matches!(self.items[item], Item::Entry | Item::Return);
        let arcs = self.lines.iter().map(|line| line.arc);
        let inner: Vec<Arc> = arcs.filter(|arc| !outer(arc.from) && !outer(arc.to)).collect();
        let mut ranks = rank::ranks(self.items.len(), &inner);
        let first = usize::from(self.items.contains(&Item::Entry));
        let last = ranks.iter().max().map_or(0, |&rank| rank + 1) + first;
        for (rank, item) in ranks.iter_mut().zip(&self.items) {
            *rank = match item {
                Item::Entry => 0,
                Item::Return => last,
                Item::Node(_) | Item::Note(_) => *rank + first,
            };
        }
        ranks
    }

    fn add(&mut self, link: &'a Link, arc: Arc) {
        self.lines.push(Line { link, arc, turned: false, back: false });
    }

    fn item(&mut self, item: Item) -> usize {
        self.items.push(item);
        self.items.len() - 1
    }

    fn turn_last(&mut self) {
        if let Some(line) = self.lines.last_mut() {
            (line.turned, line.back) = (true, true);
        }
    }

    fn break_cycles(&mut self) {
        let mut arcs: Vec<Arc> = self.lines.iter().map(|line| line.arc).collect();
        let turned = rank::break_cycles(self.items.len(), &mut arcs);
        for ((line, arc), turned) in self.lines.iter_mut().zip(arcs).zip(turned) {
            line.arc = arc;
            line.turned ^= turned;
            line.back |= turned;
        }
    }

    fn note_turned(&mut self) {
        for index in 0..self.lines.len() {
            if self.lines[index].turned {
                let arc = self.lines[index].arc.turned();
                self.note(index, arc);
            }
        }
    }

    fn note_last(&mut self) {
        let last = self.lines.len() - 1;
        self.note(last, self.lines[last].arc);
    }

    /// Lets the line from `arc.from` end in a note about `arc.to`.
    fn note(&mut self, line: usize, arc: Arc) {
        if let Item::Node(target) = self.items[arc.to] {
            let to = self.item(Item::Note(target));
            let line = &mut self.lines[line];
            line.arc = Arc { from: arc.from, to };
            (line.turned, line.back) = (false, true);
        }
    }

    /// Links between the scope's heading and its body; one entry and one return serve them all.
    fn add_outer(&mut self, outer: Vec<(&'a Link, Ends)>) {
        let (mut entry, mut exit) = (None, None);
        for (link, ends) in outer {
            match ends {
                (None, Some(to)) => {
                    let from = *entry.get_or_insert_with(|| self.item(Item::Entry));
                    self.add(link, Arc { from, to });
                }
                (Some(from), None) => {
                    let to = *exit.get_or_insert_with(|| self.item(Item::Return));
                    self.add(link, Arc { from, to });
                    if let Some(line) = self.lines.last_mut() {
                        line.back = true;
                    }
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
    }
}

impl Arc {
    fn turned(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}
