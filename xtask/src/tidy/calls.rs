//! Finds the methods that the `impl` blocks of a file define, and those that they call on `self`: what one file of a type
//! calls may be in another, which no path names.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, ImplItem, ItemImpl, Macro, Type};

/// A method of a type, and the line where it is defined or called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name of the type.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// The line, counted from 1.
    pub line: usize,
}

/// The methods of a file.
#[derive(Debug, Default)]
pub struct Methods {
    /// Those that it defines.
    pub defined: Vec<Method>,
    /// Those that it calls as `self.name()`.
    pub called: Vec<Method>,
}

impl Methods {
    /// Those in a file.
    pub fn of(file: &syn::File) -> Self {
        let mut collector = Collector { methods: Self::default(), owner: None };
        collector.visit_file(file);
        collector.methods
    }
}

struct Collector {
    methods: Methods,
    /// The type of the block.
    owner: Option<String>,
}

impl Collector {
    fn called(&mut self, name: String, line: usize) {
        if let Some(owner) = self.owner.clone() {
            self.methods.called.push(Method { owner, name, line });
        }
    }

    /// Macros are not parsed: in their tokens, a call is `self`, a dot, a name and parentheses.
    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for found in tokens.windows(4) {
            if let [TokenTree::Ident(this), TokenTree::Punct(dot), TokenTree::Ident(name), TokenTree::Group(group)] =
                found
                && this == "self"
                && dot.as_char() == '.'
                && group.delimiter() == Delimiter::Parenthesis
            {
                self.called(name.to_string(), name.span().start().line);
            }
        }
        for token in tokens {
            if let TokenTree::Group(group) = token {
                self.walk(group.stream());
            }
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let owner = match &*block.self_ty {
            Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        let before = std::mem::replace(&mut self.owner, owner.clone());
        if let Some(owner) = owner {
            let functions = block.items.iter().filter_map(|item| match item {
                ImplItem::Fn(function) => Some(&function.sig.ident),
                _ => None,
            });
            let method = |name: &proc_macro2::Ident| Method {
                owner: owner.clone(),
                name: name.to_string(),
                line: name.span().start().line,
            };
            self.methods.defined.extend(functions.map(method));
        }
        visit::visit_item_impl(self, block);
        self.owner = before;
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if let Expr::Path(receiver) = &*call.receiver
            && receiver.path.is_ident("self")
        {
            self.called(call.method.to_string(), call.method.span().start().line);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, found: &'ast Macro) {
        self.walk(found.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_on_self_are_found_with_the_type_whose_methods_they_are() {
        let text = "impl<B> a::Engine<B> {\n fn f(&self) { self.g(); self.x.h(); y.i(); assert!(self.j(1)) }\n}\n\
                    fn k() { self.l() }\nimpl Clone for M { fn clone(&self) -> Self { self.n() } }";
        let methods = Methods::of(&syn::parse_file(text).unwrap());
        let found = |methods: &[Method]| -> Vec<String> {
            methods.iter().map(|Method { owner, name, line }| format!("{owner}::{name} {line}")).collect()
        };
        assert_eq!(found(&methods.defined), ["Engine::f 2", "M::clone 5"]);
        assert_eq!(found(&methods.called), ["Engine::g 2", "Engine::j 2", "M::n 5"]);
    }
}
