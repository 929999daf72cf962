//! TypeScript of everything that crosses to the page, in one file.

use std::collections::BTreeMap;

use ts_rs::{Config, TS, TypeVisitor};

use crate::Problem;
use crate::compare::*;
use crate::estimate::*;
use crate::frame::*;
use crate::jobs::*;
use crate::measure::*;
use crate::models::*;

const HEAD: &str = "// Made from the Rust types by `npm run bindings`; do not edit.\n\n";

/// A command in TypeScript.
struct Command {
    name: &'static str,
    arguments: Vec<(&'static str, String)>,
    tells: Option<String>,
    answer: String,
}

/// Every declaration by its name, so that the file does not depend on any order.
#[derive(Default)]
struct Declarations {
    config: Config,
    declared: BTreeMap<String, String>,
}

impl Declarations {
    fn add<T: TS + 'static + ?Sized>(&mut self) -> String {
        self.visit::<T>();
        T::name(&self.config)
    }
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // Types without a place of their own (numbers, lists, options) only lead to others.
        if T::output_path().is_some() {
            let name = T::ident(&self.config);
            if self.declared.contains_key(&name) {
                return;
            }
            let docs = T::docs().unwrap_or_default();
            let declaration = T::decl(&self.config);
            self.declared
                .insert(name, format!("{docs}export {declaration}\n"));
        }
        T::visit_dependencies(self);
        T::visit_generics(self);
    }
}

macro_rules! commands {
    ($( $name:ident ( $($argument:ident : $type:ty),* ) $(tells $message:ty)? => $answer:ty; )*) => {
        fn commands(types: &mut Declarations) -> Vec<Command> {
            vec![$( Command {
                name: stringify!($name),
                arguments: vec![$((stringify!($argument), types.add::<$type>())),*],
                tells: None $(.or(Some(types.add::<$message>())))?,
                answer: types.add::<$answer>(),
            } ),*]
        }
    };
}
// The list says `->`, which a `ty` may not be followed by everywhere: `=>` stands for it here.
macro_rules! listed {
    ($( $name:ident ( $($argument:ident : $type:ty),* ) $(tells $message:ident)? -> $answer:ty; )*) => {
        commands! { $( $name ( $($argument : $type),* ) $(tells $message)? => $answer; )* }
    };
}
crate::for_each_command!(listed);

/// The whole file.
pub fn typescript() -> String {
    let mut types = Declarations {
        config: Config::new().with_large_int("number"),
        declared: BTreeMap::new(),
    };
    types.add::<Problem>();
    let commands = commands(&mut types);
    let mut text = HEAD.to_owned();
    for declaration in types.declared.values() {
        text.push_str(declaration);
        text.push('\n');
    }
    text.push_str("/** What the page may ask: arguments, messages told meanwhile, answer. */\n");
    text.push_str("export interface Commands {\n");
    for command in &commands {
        let arguments: Vec<String> = command
            .arguments
            .iter()
            .map(|(name, r#type)| format!("{name}: {type}"))
            .collect();
        let arguments = match arguments.is_empty() {
            true => "Record<string, never>".to_owned(),
            false => format!("{{ {} }}", arguments.join("; ")),
        };
        let tells = command.tells.as_deref().unwrap_or("never");
        text.push_str(&format!(
            "  {}: {{ arguments: {arguments}; tells: {tells}; answer: {} }};\n",
            command.name, command.answer
        ));
    }
    text.push_str(
        "}\n\n/** Their names, to check a list at run time. */\nexport const commandNames = [\n",
    );
    for command in &commands {
        text.push_str(&format!("  \"{}\",\n", command.name));
    }
    text.push_str("] as const satisfies readonly (keyof Commands)[];\n");
    text
}
