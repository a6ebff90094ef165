"""Templates whose nodes render with less CPU time; their output is that of Django's own nodes.

The loader replaces the classes of the most frequent nodes after a template was compiled. Each replacement handles the
frequent case (a text, a whole number, an attribute, a constant message) and leaves every other case, errors included,
to Django's class.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from django.conf import settings
from django.template import Origin, Template
from django.template.base import FilterExpression, Node, NodeList, Variable, VariableNode, render_value_in_context
from django.template.context import Context
from django.template.defaulttags import IfNode
from django.template.loaders import cached
from django.template.smartif import TokenBase
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext


class QuickVariable(Variable):
    """Looks names up in the context, keys up in dictionaries and attributes up in plain objects."""

    __slots__ = ()

    def _resolve_lookup(self, context: Context) -> Any:
        try:
            return _look_up(self.lookups or (), context)
        except Exception:  # noqa: BLE001 - Django's lookup says what becomes of it
            return super()._resolve_lookup(context)  # type: ignore[misc]  # private, and no stub has it


def _look_up(names: tuple[str, ...], context: Context) -> Any:
    """Return the value; every failure is an exception."""
    first = True
    current: Any = None
    for name in names:
        if first:
            first = False
            for names_there in reversed(context.dicts):
                if name in names_there:
                    current = names_there[name]
                    break
            else:
                raise LookupError(name)
        elif type(current) is dict:
            current = current[name]
        elif hasattr(type(current), "__getitem__"):
            try:
                current = current[name]
            except (TypeError, AttributeError, KeyError, ValueError, IndexError):
                current = getattr(current, name)
        else:
            current = getattr(current, name)
        if callable(current) and not getattr(current, "do_not_call_in_templates", False):
            if getattr(current, "alters_data", False):
                raise TypeError
            current = current()
    return current


class QuickExpression(FilterExpression):
    """A variable without filters."""

    __slots__ = ()

    def resolve(self, context: Context, ignore_failures: bool = False) -> Any:
        variable = self.var
        if variable.translate:  # `{% translate name %}` says so when it renders
            return super().resolve(context, ignore_failures)
        try:
            return _look_up(variable.lookups, context)
        except Exception:  # noqa: BLE001 - as above
            return super().resolve(context, ignore_failures)


class QuickNodeList(NodeList):
    """Renders nodes without the wrapper that says which node failed, which only the error page of DEBUG shows."""

    def render(self, context: Context) -> SafeString:
        if context.template is None or context.template.engine.debug:
            return super().render(context)
        return SafeString("".join([node.render(context) for node in self]))


class QuickVariableNode(VariableNode):
    """Writes texts and whole numbers without asking for the formats of the language."""

    def render(self, context: Context) -> str:
        value = self.filter_expression.resolve(context)
        kind = type(value)
        if kind is str:
            return escape(value) if context.autoescape else value
        if kind is SafeString:
            return value
        if kind is int and not settings.USE_THOUSAND_SEPARATOR:
            return str(value)
        return render_value_in_context(value, context)


class QuickTranslateNode(TranslateNode):
    """Keeps the translations of a constant text, one per language."""

    _texts: dict[str | None, str]

    def render(self, context: Context) -> str:
        language = get_language()
        text = self._texts.get(language)
        if text is None:
            var, self.asvar = self.asvar, None
            try:
                text = self._texts[language] = super().render(context)
            finally:
                self.asvar = var
        if self.asvar:
            context[self.asvar] = text
            return ""
        return text


class QuickBlockTranslateNode(BlockTranslateNode):
    """Keeps the translations of a text without plural, one per language, and fills in the values."""

    _message: str
    _names: list[str]
    _texts: dict[str | None, str]

    def render(self, context: Context, nested: bool = False) -> str:
        language = get_language()
        text = self._texts.get(language)
        if text is None:
            text = self._texts[language] = gettext(self._message)
        values = {}
        for name in self._names:
            expression = self.extra_context.get(name)
            if expression is None and name not in context:
                return super().render(context, nested)
            value = context[name] if expression is None else expression.resolve(context)
            values[name] = render_value_in_context(value, context)
        try:
            result = text % values
        except (KeyError, ValueError):
            return super().render(context, nested)
        if self.asvar:
            context[self.asvar] = SafeString(result)
            return ""
        return result


class Loader(cached.Loader):
    """Django's caching loader, with quick nodes."""

    def get_template(self, template_name: str, skip: list[Origin] | None = None) -> Template:
        is_cached = self.cache_key(template_name, skip) in self.get_template_cache
        template = super().get_template(template_name, skip)
        if not is_cached:
            quicken(template)
        return template


def quicken(template: Template) -> None:
    """Replace the classes of nodes and variables of a compiled template."""
    _quicken_lists(template.nodelist)
    for node in template.nodelist.get_nodes_by_type(Node):
        _quicken_lists(*vars(node).values())
        if isinstance(node, IfNode):
            _quicken_lists(*(nodes for _condition, nodes in node.conditions_nodelists))
        for expression in _expressions(node):
            _quicken_expression(expression)
        if type(node) is VariableNode:
            node.__class__ = QuickVariableNode
        elif type(node) is TranslateNode and _is_constant(node):
            vars(node).update(_texts={})  # before the class: another thread may render the template already
            node.__class__ = QuickTranslateNode
        elif type(node) is BlockTranslateNode and not node.plural and not node.message_context:
            message, names = node.render_token_list(node.singular)
            vars(node).update(_message=message, _names=names, _texts={})
            node.__class__ = QuickBlockTranslateNode


def _quicken_lists(*values: object) -> None:
    """Replace the classes of those values that are lists of nodes."""
    for value in values:
        if type(value) is NodeList:
            value.__class__ = QuickNodeList


def _is_constant(node: TranslateNode) -> bool:
    """Whether a node translates a text of the template, without filters."""
    expression = node.filter_expression
    return expression.var.lookups is None and not expression.filters and not node.message_context


def _expressions(node: Node) -> Iterator[FilterExpression]:
    """Expressions that a node holds: as attributes, in lists or mappings of them, or in its conditions."""
    for value in vars(node).values():
        if isinstance(value, FilterExpression):
            yield value
        elif isinstance(value, dict):
            yield from (item for item in value.values() if isinstance(item, FilterExpression))
        elif isinstance(value, list | tuple):
            yield from (item for item in value if isinstance(item, FilterExpression))
    if isinstance(node, IfNode):
        for condition, _nodes in node.conditions_nodelists:
            yield from _of_condition(condition)


def _of_condition(condition: Any) -> Iterator[FilterExpression]:
    """Expressions of a condition and of the conditions that it joins."""
    if isinstance(condition, TokenBase):
        yield from _of_condition(condition.first)
        yield from _of_condition(condition.second)
        yield from (value for value in (condition.value,) if isinstance(value, FilterExpression))


def _quicken_expression(expression: FilterExpression) -> None:
    """Replace the class of its variable and of those among the arguments of its filters."""
    values = (value for _filter, arguments in expression.filters for _is_variable, value in arguments)
    for variable in (expression.var, *values):
        if type(variable) is Variable and variable.lookups is not None:
            variable.__class__ = QuickVariable
    if type(expression) is FilterExpression and not expression.filters and type(expression.var) is QuickVariable:
        expression.__class__ = QuickExpression
