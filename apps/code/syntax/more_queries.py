"""The queries of languages whose definitions need no explanation. See `queries`."""

from collections.abc import Mapping


def any_of(*keywords: str) -> str:
    """The condition that @keyword is one of some words."""
    words = " ".join(f'"{keyword}"' for keyword in keywords)
    return f"(#any-of? @keyword {words})"


def _list(kind: str, role: str, *keywords: str) -> str:
    """A list of Clojure that begins with one of some words and a name."""
    words = "(list_lit . (sym_lit) @keyword . (sym_lit name: (sym_name) @name))"
    return f"({words} {role}@{kind} {any_of(*keywords)})"


def _command(kind: str, *names: str) -> str:
    """A command of CMake that defines its first argument."""
    words = "(normal_command (identifier) @keyword (argument_list . (argument) @name))"
    return f"({words} @{kind} {any_of(*names, *map(str.upper, names))})"


def _groovy(kind: str, name: str, *keywords: str) -> str:
    """A block of Groovy after one of some words. Its grammar knows no others."""
    words = f"(command . (unit . (identifier) @keyword .) . {name})"
    return f"({words} @def @{kind} {any_of(*keywords)})"


_GROOVY_BLOCK = "(block . (unit . (identifier) @name .))"

# A signature may have a return type and `where`, and is the left side of a short definition.
_CALL = "(call_expression . [(identifier) (field_expression) (parametrized_type_expression)] @name)"
_SIGNATURES = [
    _CALL,
    f"(typed_expression . {_CALL})",
    f"(where_expression . {_CALL})",
    f"(where_expression . (typed_expression . {_CALL}))",
]
_JULIA = "\n".join(
    line
    for call in _SIGNATURES
    for line in (
        f"(function_definition (signature {call})) @def",
        f"(assignment . {call}) @def @function",
    )
)
_JULIA += """
(macro_definition (signature (call_expression . (_) @name))) @def
(struct_definition (type_head [(identifier) (parametrized_type_expression)] @name)) @def
(struct_definition (type_head (binary_expression . (_) @name))) @def
(abstract_definition (type_head [(identifier) (parametrized_type_expression)] @name)) @type
(abstract_definition (type_head (binary_expression . (_) @name))) @type
(module_definition name: (_) @name) @def
(const_statement (assignment . (identifier) @name)) @constant
"""

MORE_PATTERNS: Mapping[str, str] = {
    "julia": _JULIA,
    "groovy": _groovy("process", _GROOVY_BLOCK, "process")
    + _groovy("workflow", _GROOVY_BLOCK, "workflow")
    + _groovy("function", "(block . (unit . (func . (identifier) @name)))", "def")
    + _groovy("class", _GROOVY_BLOCK, "class", "enum", "interface")
    + _groovy("class", "(unit . (identifier) @name .)", "class"),
    "ruby": """
(assignment left: (constant) @name) @constant
((call method: (identifier) @keyword
    arguments: (argument_list [
        (simple_symbol) @name (string . (string_content) @name .)])) @property
    (#match? @keyword "^(attr|attr_(accessor|reader|writer)|[cm]attr_.*|class_attribute)$"))
((call method: (identifier) @keyword
    arguments: (argument_list . [
        (simple_symbol) @name (string . (string_content) @name .)])) @def @method
    (#any-of? @keyword "define_method" "define_singleton_method" "alias_method" "scope"))
((call method: (identifier) @keyword arguments: (argument_list (simple_symbol) @name)) @method
    (#eq? @keyword "delegate"))
((call method: (identifier) @keyword
    arguments: (argument_list . (_) (simple_symbol) @name)) @method
    (#any-of? @keyword "def_delegators" "def_delegator" "def_instance_delegators"))
(alias name: (_) @name) @method
""",
    "apex": """
(trigger_declaration name: (_) @name) @def @trigger
(enum_constant name: (_) @name) @member
(field_declaration declarator: (variable_declarator name: (_) @name)) @field
""",
    "gdscript": """
(constructor_definition) @def
(class_name_statement name: (_) @name) @class
(signal_statement name: (_) @name) @signal
(const_statement name: (_) @name) @constant
(source (variable_statement name: (_) @name) @variable)
(class_body (variable_statement name: (_) @name) @field)
(enumerator left: (_) @name) @member
""",
    "solidity": """
(contract_declaration name: (_) @name) @def @contract
(library_declaration name: (_) @name) @def @library
(modifier_definition name: (_) @name) @def @modifier
(constructor_definition "constructor" @label) @def
(event_definition name: (_) @name) @event
(error_declaration name: (_) @name) @error
(user_defined_type_definition (identifier) @name) @type
(state_variable_declaration name: (_) @name) @field
(enum_value) @name @member
""",
    "clojure": "\n".join(
        [
            _list("function", "@def ", "defn", "defn-", "defmulti", "defmethod", "deftest"),
            _list("macro", "@def ", "defmacro"),
            _list("protocol", "@def ", "defprotocol", "definterface"),
            _list("record", "@def ", "defrecord", "deftype"),
            _list("namespace", "", "ns"),
            _list("variable", "", "def", "defonce"),
            # Functions of a protocol
            """((list_lit . (sym_lit) @keyword (list_lit . (sym_lit (sym_name) @name) . (vec_lit)))
                @function (#any-of? @keyword "defprotocol" "definterface"))""",
        ]
    ),
    "fsharp": """
(namespace name: (_) @label) @def
(named_module name: (_) @name) @def @module
(module_defn (identifier) @name) @def @module
(declaration_expression (function_or_value_defn
    (function_declaration_left . (access_modifier)? . (identifier) @name))) @def @function
(declaration_expression (function_or_value_defn (function_declaration_left
    (active_pattern (active_pattern_op_name) @name)))) @function
(declaration_expression (function_or_value_defn
    (value_declaration_left (identifier_pattern) @name))) @value
(type_definition (_ (type_name type_name: (_) @name)) @kind) @def
(method_or_prop_defn name: (property_or_ident method: (_) @name)) @def @method
(method_or_prop_defn name: (property_or_ident . (identifier) @name .)) @def @method
(member_signature (identifier) @name) @method
(exception_definition exception_name: (_) @name) @exception
(union_type_case (identifier) @name) @member
(record_field (identifier) @name) @field
""",
    "elm": """
(module_declaration name: (_) @name) @module
(file (value_declaration functionDeclarationLeft:
    (function_declaration_left . (lower_case_identifier) @name)) @def @function)
(union_variant name: (_) @name) @member
(port_annotation name: (_) @name) @function
""",
    "nix": """
(binding attrpath: (attrpath) @name expression: (function_expression)) @def @function
(let_expression (binding_set (binding attrpath: (attrpath) @name) @variable))
""",
    "cmake": "\n".join(
        [
            "(function_def (function_command (argument_list . (argument) @name))) @def @function",
            "(macro_def (macro_command (argument_list . (argument) @name))) @def @macro",
            _command("target", "add_library", "add_executable", "add_custom_target"),
            f"(source_file {_command('variable', 'set', 'option')})",
            _command("module", "project"),
        ]
    ),
    "bicep": """
(parameter_declaration . (identifier) @name) @variable
(variable_declaration . (identifier) @name) @variable
(output_declaration . (identifier) @name) @output
(type_declaration . (identifier) @name) @type
(resource_declaration . (identifier) @name) @def @resource
(module_declaration . (identifier) @name) @def @module
(user_defined_function name: (_) @name) @def @function
""",
    "verilog": """
(module_declaration (module_header (simple_identifier) @name)) @def
(interface_declaration (_ (interface_identifier) @name)) @def
(package_declaration (package_identifier) @name) @def
(class_declaration (class_identifier) @name) @def
(function_declaration (function_body_declaration (function_identifier) @name)) @def
(task_declaration (task_body_declaration (task_identifier) @name)) @def @function
(type_declaration (simple_identifier) @name .) @type
""",
}
