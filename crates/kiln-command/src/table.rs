//! The command table: every family's rows in one place, found by name in a few nanoseconds.

use std::collections::HashMap;

use kiln_resp::Args;

use crate::error::{CommandError, echo};
use crate::spec::{CommandFlags, CommandSpec, Group};

/// Position of a command in the table: an index into per-command statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommandId(pub u16);

/// A row and its position.
#[derive(Clone, Copy)]
pub struct Command {
    /// The row.
    pub spec: &'static CommandSpec,
    /// Its position.
    pub id: CommandId,
    /// Whether its name has two words.
    pub is_subcommand: bool,
    /// Whether it is about values that have allocations of their own, worth a prefetch.
    pub values_apart: bool,
    /// Whether a call takes about as long as the next, so that neighbours may be timed together.
    pub constant_time: bool,
}

/// Slots of the name index; a power of two, a few times the number of commands.
const SLOTS: usize = 4096;
const EMPTY: u16 = u16::MAX;
/// Longest part of an unknown name, and of its arguments together, that an error repeats.
const ECHO_MAX: usize = 128;

/// All commands.
pub struct CommandTable {
    commands: Vec<Command>,
    /// Name under which each is called now (`rename-command`), in upper case.
    names: Vec<String>,
    slots: Box<[u16; SLOTS]>,
}

impl CommandTable {
    /// Joins the families' rows.
    ///
    /// # Panics
    ///
    /// If two rows have one name.
    pub fn new(families: &[&'static [CommandSpec]]) -> Self {
        let rows = families.iter().flat_map(|family| family.iter());
        let commands: Vec<_> = rows
            .enumerate()
            .map(|(index, spec)| Command {
                spec,
                id: CommandId(index as u16),
                is_subcommand: spec.container_name().is_some(),
                values_apart: matches!(
                    spec.group,
                    Group::List | Group::Set | Group::Hash | Group::SortedSet
                ),
                constant_time: spec.flags.contains(CommandFlags::FAST)
                    || spec.complexity.starts_with("O(1)"),
            })
            .collect();
        let names = commands.iter().map(|command| command.spec.name.to_owned()).collect();
        let mut table = Self { commands, names, slots: Box::new([EMPTY; SLOTS]) };
        table.index();
        table
    }

    fn index(&mut self) {
        self.slots.fill(EMPTY);
        let mut seen = HashMap::new();
        for (index, name) in self.names.iter().enumerate() {
            if name.is_empty() {
                continue;
            }
            assert!(seen.insert(name.as_str(), index).is_none(), "two commands are named {name}");
            let mut slot = slot_of(name.as_bytes());
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) % SLOTS;
            }
            self.slots[slot] = index as u16;
        }
    }

    /// Gives a command another name, or none (`new` empty). Says whether there was such a one.
    pub fn rename(&mut self, old: &str, new: &str) -> bool {
        let old = old.to_ascii_uppercase();
        let Some(at) = self.names.iter().position(|name| *name == old) else { return false };
        self.names[at] = new.to_ascii_uppercase();
        self.index();
        true
    }

    /// The command called `name`, in any case; `CONTAINER|SUB` finds a subcommand.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<Command> {
        let mut slot = slot_of(name);
        loop {
            let index = self.slots[slot];
            if index == EMPTY {
                return None;
            }
            if self.names[usize::from(index)].as_bytes().eq_ignore_ascii_case(name) {
                return Some(self.commands[usize::from(index)]);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The command that `args` calls, its arity checked.
    ///
    /// # Errors
    ///
    /// Unknown command, unknown subcommand, wrong number of words; in this order.
    #[inline]
    pub fn resolve(&self, args: &Args<'_>) -> Result<Command, CommandError> {
        let name = args.get(0);
        let Some(mut command) = self.find(name) else { return Err(unknown(args)) };
        if command.spec.has_subcommands && args.len() > 1 {
            command = self.subcommand(command, args)?;
        }
        if !command.spec.arity.admits(args.len()) {
            return Err(wrong_arity(command.spec));
        }
        Ok(command)
    }

    fn subcommand(&self, container: Command, args: &Args<'_>) -> Result<Command, CommandError> {
        let sub = args.get(1);
        let mut name = container.spec.name.as_bytes().to_vec();
        name.push(b'|');
        name.extend_from_slice(sub);
        self.find(&name).ok_or_else(|| CommandError::UnknownSubcommand {
            command: container.spec.name.into(),
            subcommand: echo(&sub[..sub.len().min(ECHO_MAX)]),
        })
    }

    /// All commands and subcommands in table order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Command> + '_ {
        self.commands.iter().copied()
    }

    /// The subcommands of a container.
    pub fn subcommands(&self, container: &CommandSpec) -> impl Iterator<Item = Command> + '_ {
        let name = container.name;
        self.iter().filter(move |command| command.spec.container_name() == Some(name))
    }

    /// The command at a position.
    pub fn get(&self, id: CommandId) -> Command {
        self.commands[usize::from(id.0)]
    }

    /// How many commands and subcommands there are.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

/// The error for a command with too few or too many words.
pub fn wrong_arity(spec: &CommandSpec) -> CommandError {
    CommandError::WrongArity(spec.name.to_ascii_lowercase().into())
}

fn unknown(args: &Args<'_>) -> CommandError {
    let name = args.get(0);
    let mut shown = String::new();
    for arg in args.iter().skip(1) {
        // One character of `shown` is one byte of the reply.
        let len = shown.chars().count();
        if len >= ECHO_MAX {
            break;
        }
        let room = ECHO_MAX - len;
        shown.push('\'');
        shown.push_str(&echo(&arg[..arg.len().min(room)]));
        shown.push_str("' ");
    }
    CommandError::UnknownCommand { name: echo(&name[..name.len().min(ECHO_MAX)]), args: shown }
}

/// First guess for a name: its first and last eight bytes with the case bit set, mixed. Setting
/// that bit makes a few other characters equal too, which the comparison sorts out.
#[inline]
fn slot_of(name: &[u8]) -> usize {
    const CASE: u64 = 0x2020_2020_2020_2020;
    let word = |bytes: &[u8]| {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(padded) | CASE
    };
    let (head, tail) = match name.len() {
        0..=8 => (word(name), 0),
        len => (word(&name[..8]), word(&name[len - 8..])),
    };
    let mixed =
        (head ^ tail.rotate_left(23) ^ name.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 52) as usize % SLOTS
}

/// Whether a command may run before AUTH.
pub(crate) fn allowed_before_auth(spec: &CommandSpec) -> bool {
    spec.flags.contains(CommandFlags::NO_AUTH)
}
