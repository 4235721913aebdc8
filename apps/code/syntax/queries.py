"""The definitions of each grammar as tree-sitter queries.

NAMED lists node types that define the name in their `name` field. PATTERNS has the rest, in the
query language of tree-sitter, with these captures:

- @def with @name: a definition, and the name that it declares
- @def with @label: a scope that is labelled but declares no name (`impl Point`)
- @scope with either: the qualifier of the name in the symbol path (Go's receiver)
- @name without @def: a name that is declared without a scope (constants, fields)
- @declarator: a C declarator, whose innermost declarator is the name
- @variable, @field and other kinds: the whole declaration, of this kind; if several patterns match
  a name, one with @def counts, then the first
- @kind: the node whose type gives the kind (`struct`), if that of @def does not

Queries: https://tree-sitter.github.io/tree-sitter/using-parsers/queries/.
"""

from apps.code.syntax.more_queries import MORE_PATTERNS, any_of
from apps.code.values import words

NAMED: dict[str, str] = {
    "python": "function_definition class_definition",
    "javascript": """
        function_declaration generator_function_declaration class_declaration method_definition
        """,
    "typescript": """
        function_declaration generator_function_declaration class_declaration method_definition
        abstract_class_declaration interface_declaration enum_declaration type_alias_declaration
        function_signature internal_module
        """,
    "java": """
        class_declaration interface_declaration enum_declaration record_declaration
        annotation_type_declaration method_declaration constructor_declaration
        compact_constructor_declaration
        """,
    "go": "function_declaration type_alias",
    "rust": """
        function_item struct_item enum_item trait_item mod_item macro_definition union_item
        type_item
        """,
    "ruby": "module class method singleton_method",
    "php": """
        class_declaration interface_declaration trait_declaration enum_declaration
        method_declaration function_definition
        """,
    "cpp": "concept_definition alias_declaration",
    "csharp": """
        class_declaration struct_declaration interface_declaration record_declaration
        enum_declaration method_declaration constructor_declaration property_declaration
        delegate_declaration local_function_statement
        """,
    "scala": """
        object_definition class_definition trait_definition enum_definition function_definition
        type_definition given_definition
        """,
    "lua": "function_declaration",
    "haskell": "function bind data_type newtype type_synomym class",
    "bash": "function_definition",
    "scss": "mixin_statement function_statement",
    "dart": "class_definition enum_declaration extension_declaration",
    "perl": "subroutine_declaration_statement package_statement",
    "erlang": "record_decl",
    "apex": """
        class_declaration interface_declaration enum_declaration method_declaration
        constructor_declaration
        """,
    "gdscript": "function_definition class_definition enum_definition",
    "solidity": "interface_declaration struct_declaration enum_declaration function_definition",
    "elm": "type_declaration type_alias_declaration",
}

_JAVASCRIPT = """
(lexical_declaration (variable_declarator name: (identifier) @name
    value: [(arrow_function) (function_expression) (generator_function)])) @def @function
(variable_declaration (variable_declarator name: (identifier) @name
    value: [(arrow_function) (function_expression) (generator_function)])) @def @function
(lexical_declaration (variable_declarator name: (identifier) @name
    value: (call_expression arguments: (arguments . [(arrow_function) (function_expression)]))
    (#match? @name "^[A-Z][A-Za-z0-9]*[a-z]"))) @def @function
(expression_statement (assignment_expression left: [(member_expression) (identifier)] @name
    right: [(arrow_function) (function_expression) (class)] @kind)) @def
((assignment_expression left: (member_expression) @keyword
    right: (function_expression name: (identifier) @name)) @def @function
    (#eq? @keyword "module.exports"))
(pair key: (property_identifier) @name
    value: [(arrow_function) (function_expression)]) @def @function
(program (lexical_declaration (variable_declarator name: (identifier) @name)) @variable)
(program (variable_declaration (variable_declarator name: (identifier) @name)) @variable)
(program (export_statement
    (lexical_declaration (variable_declarator name: (identifier) @name)) @variable))
"""

_TYPESCRIPT = """
(module name: (_) @label) @def
(method_signature name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(public_field_definition name: (_) @name) @field
"""

_C = """
(function_definition declarator: (_) @declarator) @def
(type_definition declarator: (_) @declarator) @type
(struct_specifier name: (_) @name body: (_)) @def
(union_specifier name: (_) @name body: (_)) @def
(enum_specifier name: (_) @name body: (_)) @def
(enumerator name: (_) @name) @member
(preproc_def name: (_) @name) @macro
(preproc_function_def name: (_) @name) @macro
(declaration declarator: (function_declarator declarator: (identifier) @name)) @prototype
(declaration declarator: (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @name))) @prototype
(translation_unit (declaration declarator: (_) @declarator) @variable)
(preproc_ifdef (declaration declarator: (_) @declarator) @variable)
(declaration_list (declaration declarator: (_) @declarator) @variable)
"""


def _elixir_call(kind: str, *keywords: str) -> str:
    return f"""
((call target: (identifier) @keyword
    (arguments . [(identifier) @name
                  (call target: (identifier) @name)
                  (binary_operator left: (identifier) @name)
                  (binary_operator left: (call target: (identifier) @name))])) @def @{kind}
  {any_of(*keywords)})"""


_ELIXIR = f"""
((call target: (identifier) @keyword (arguments . (alias) @name) (do_block)) @def @module
  (#any-of? @keyword "defmodule" "defprotocol" "defimpl"))
{_elixir_call("function", "def", "defp", "defdelegate")}
{_elixir_call("macro", "defmacro", "defmacrop", "defguard", "defguardp")}
((call target: (identifier) @keyword (arguments . (string (quoted_content) @label)) (do_block)) @def
  (#any-of? @keyword "test" "describe"))
((unary_operator operand: (call target: (identifier) @keyword
    (arguments (binary_operator left: [(identifier) @name (call target: (_) @name)])))) @type
  (#any-of? @keyword "type" "typep" "opaque"))
"""

PATTERNS: dict[str, str] = {
    "python": """
(module (assignment left: (identifier) @name) @variable)
(module (assignment left: (pattern_list (identifier) @name)) @variable)
(module (type_alias_statement left: (type (identifier) @name)) @type)
(module (type_alias_statement left: (type (generic_type . (identifier) @name))) @type)
(class_definition body: (block (assignment left: (identifier) @name) @field))
""",
    "javascript": _JAVASCRIPT + "(field_definition property: (_) @name) @field",
    "typescript": _JAVASCRIPT + _TYPESCRIPT,
    "java": """
(field_declaration declarator: (variable_declarator name: (_) @name)) @field
(constant_declaration declarator: (variable_declarator name: (_) @name)) @constant
(enum_constant name: (_) @name) @member
""",
    "kotlin": """
(class_declaration "enum" @kind (type_identifier) @name) @def
(class_declaration ["class" "interface"] @kind (type_identifier) @name) @def
(object_declaration (type_identifier) @name) @def
(companion_object) @def
(function_declaration (simple_identifier) @name) @def
(type_alias (type_identifier) @name) @type
(enum_entry (simple_identifier) @name) @member
(source_file (property_declaration (variable_declaration (simple_identifier) @name)) @variable)
(class_body (property_declaration (variable_declaration (simple_identifier) @name)) @property)
""",
    "go": """
(method_declaration
    receiver: (parameter_list (parameter_declaration type: (_) @scope)) name: (_) @name) @def
(type_spec name: (_) @name type: (_) @kind) @def
(method_elem name: (_) @name) @method
(source_file (const_declaration (const_spec name: (_) @name) @constant))
(source_file (var_declaration (var_spec name: (_) @name) @variable))
(source_file (var_declaration (var_spec_list (var_spec name: (_) @name) @variable)))
""",
    "rust": """
(impl_item type: (_) @label) @def
(function_signature_item name: (_) @name) @method
(const_item name: (_) @name) @constant
(static_item name: (_) @name) @variable
(enum_variant name: (_) @name) @member
""",
    "php": """
(namespace_definition name: (_) @label body: (_)) @def
(const_element (name) @name) @constant
(enum_case name: (_) @name) @member
(property_element name: (variable_name (name) @name)) @property
""",
    "c": _C,
    "cpp": _C
    + """
(class_specifier name: (_) @name body: (_)) @def
(namespace_definition name: (_) @name) @def
(field_declaration declarator: (function_declarator declarator: (_) @name)) @method
(field_declaration declarator: (pointer_declarator
    declarator: (function_declarator declarator: (_) @name))) @method
(field_declaration declarator: (reference_declarator
    (function_declarator declarator: (_) @name))) @method
""",
    "objc": """
(class_interface . (identifier) @name) @def
(class_implementation . (identifier) @name) @def
(protocol_declaration . (identifier) @name) @def
(method_definition (identifier) @name) @def
(method_declaration (identifier) @name) @method
(property_declaration (struct_declaration (struct_declarator (_) @declarator))) @property
(function_definition declarator: (_) @declarator) @def
(preproc_def name: (_) @name) @macro
(type_definition declarator: (_) @declarator) @type
(struct_specifier name: (_) @name body: (_)) @def
(enum_specifier name: (_) @name body: (_)) @def
(enumerator name: (_) @name) @member
(declaration declarator: (function_declarator declarator: (identifier) @name)) @prototype
(translation_unit (declaration declarator: (_) @declarator) @variable)
""",
    "csharp": """
(namespace_declaration name: (_) @label) @def
(field_declaration (variable_declaration (variable_declarator name: (_) @name))) @field
(enum_member_declaration name: (_) @name) @member
""",
    "swift": """
(class_declaration declaration_kind: _ @kind name: (type_identifier) @name) @def
(class_declaration name: (user_type) @label) @def
(protocol_declaration name: (type_identifier) @name) @def
(function_declaration name: (simple_identifier) @name) @def
(init_declaration "init" @label) @def
(protocol_function_declaration name: (simple_identifier) @name) @method
(typealias_declaration name: (type_identifier) @name) @type
(enum_entry name: (simple_identifier) @name) @member
(source_file (property_declaration name: (pattern bound_identifier: (_) @name)) @variable)
(class_body (property_declaration name: (pattern bound_identifier: (_) @name)) @property)
""",
    "scala": """
(function_declaration name: (_) @name) @method
(template_body (val_definition pattern: (identifier) @name) @field)
(template_body (var_definition pattern: (identifier) @name) @field)
(simple_enum_case name: (_) @name) @member
""",
    "lua": """
(assignment_statement (variable_list name: (_) @name)
    (expression_list value: (function_definition))) @def @function
(field name: (identifier) @name value: (function_definition)) @def @function
(chunk (assignment_statement (variable_list name: (identifier) @name)) @variable)
(chunk (variable_declaration
    (assignment_statement (variable_list name: (identifier) @name))) @variable)
""",
    "haskell": """
(instance name: (_) @label) @def
(signature name: (variable) @name) @prototype
(data_constructor constructor: (_ name: (constructor) @name)) @member
(field name: (field_name (variable) @name)) @field
(header module: (module) @name) @module
""",
    "elixir": _ELIXIR,
    "zig": """
(Decl (FnProto function: (IDENTIFIER) @name)) @def @function
(Decl (VarDecl variable_type_function: (IDENTIFIER) @name
    (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType . _ @kind)))))) @def
(TestDecl (STRINGLITERALSINGLE) @label) @def
(source_file (Decl (VarDecl variable_type_function: (IDENTIFIER) @name)) @variable)
""",
    "bash": """
(program (variable_assignment name: (_) @name) @variable)
(program (declaration_command (variable_assignment name: (_) @name) @variable))
""",
    "html": """
((attribute (attribute_name) @keyword (quoted_attribute_value (attribute_value) @name)) @element
  (#eq? @keyword "id"))
""",
    "css": """
(rule_set (selectors) @label) @def
(rule_set (selectors (class_selector (class_name) @name))) @selector
(rule_set (selectors (id_selector (id_name) @name))) @selector
(keyframes_statement (keyframes_name) @name) @def
""",
    "scss": """
(rule_set (selectors) @label) @def
(rule_set (selectors (class_selector (class_name) @name))) @selector
(stylesheet (declaration (property_name) @name) @variable)
""",
    "json": """
(document (object (pair key: (string (string_content) @name)) @key))
(pair key: (string (string_content) @label) value: [(object) (array)]) @def
""",
    "yaml": """
(document (block_node (block_mapping (block_mapping_pair key: (_) @name) @key)))
(block_mapping_pair key: (_) @label value: (block_node)) @def
""",
    "toml": """
(table . [(bare_key) (dotted_key) (quoted_key)] @name) @def @key
(table_array_element . [(bare_key) (dotted_key) (quoted_key)] @name) @def @key
(document (pair . (_) @name) @key)
""",
    "dockerfile": """
(from_instruction as: (image_alias) @name) @stage
(arg_instruction name: (_) @name) @variable
(env_pair name: (_) @name) @variable
""",
    "make": """
(rule (targets (word) @name)) @def @target
(variable_assignment name: (_) @name) @variable
(define_directive name: (_) @name) @def @macro
""",
    "dart": """
(mixin_declaration (identifier) @name) @def
(extension_type_declaration name: (_) @name) @def @type
(function_signature name: (_) @name) @function
(getter_signature name: (_) @name) @property
(type_alias . (type_identifier) @name) @type
(static_final_declaration (identifier) @name) @constant
""",
    "r": """
(binary_operator lhs: (identifier) @name rhs: (function_definition)) @def @function
(program (binary_operator lhs: (identifier) @name) @variable)
""",
    "ocaml": """
(compilation_unit (value_definition (let_binding pattern: (value_name) @name)) @def)
(structure (value_definition (let_binding pattern: (value_name) @name)) @def)
(type_definition (type_binding name: (_) @name)) @def
(module_definition (module_binding (module_name) @name)) @def
(module_type_definition (module_type_name) @name) @def @interface
(class_definition (class_binding (class_name) @name)) @def
(method_definition (method_name) @name) @def
""",
    "erlang": """
(fun_decl clause: (function_clause name: (_) @name)) @def
(pp_define lhs: (macro_lhs name: (_) @name)) @macro
(module_attribute name: (_) @name) @module
(type_alias name: (type_name name: (_) @name)) @type
(opaque name: (type_name name: (_) @name)) @type
""",
    "terraform": """
(block (string_lit (template_literal) @name) . (block_start)) @def
(block (identifier) @label . (block_start)) @def
""",
    "proto": """
(message (message_name) @name) @def
(enum (enum_name) @name) @def
(service (service_name) @name) @def
(rpc (rpc_name) @name) @def
""",
    "graphql": """
(object_type_definition (name) @name) @def
(input_object_type_definition (name) @name) @def
(interface_type_definition (name) @name) @def
(enum_type_definition (name) @name) @def
(union_type_definition (name) @name) @def
(scalar_type_definition (name) @name) @def
(operation_definition (name) @name) @def
(fragment_definition (fragment_name) @name) @def
""",
    "powershell": """
(function_statement (function_name) @name) @def
(class_statement . (simple_name) @name) @def
(class_method_definition (simple_name) @name) @def
""",
}

# Grammars that share their tables.
SAME = {"tsx": "typescript", "cuda": "cpp", "hlsl": "cpp", "glsl": "c"}

# Nodes that belong to the next node, besides comments, decorators and attributes.
LEADING: dict[str, frozenset[str]] = {
    "elixir": frozenset({"unary_operator"}),
    "haskell": frozenset({"signature", "haddock"}),
    "erlang": frozenset({"spec"}),
    "elm": frozenset({"type_annotation"}),
}
LEADING_WORDS = (
    "comment",
    "decorator",
    "attribute_item",
    "attribute_list",
    "annotation",
    "haddock",
)

# Nodes at which a signature ends, in grammars without a field `body`.
BODIES = words(
    """
    block class_body enum_class_body function_body do_block Block body_statement compound_statement
    implementation_definition message_body enum_body script_block selection_set fields_definition
    block_start recipe declaration_list interface_body statement_block arrow_function
    function_expression
    """
)


def query_text(grammar: str) -> str:
    """The query of a grammar; "" if there is none."""
    table = SAME.get(grammar, grammar)
    named = (f"({node} name: (_) @name) @def" for node in NAMED.get(table, "").split())
    patterns = PATTERNS.get(table) or MORE_PATTERNS.get(table, "")
    return "\n".join([*named, patterns]).strip()
