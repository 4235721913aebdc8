"""A repository for pictures: a notebook, a component of Vue, comments in Chinese, an API."""

import json

from tests.support.notebooks import API, CHURN, written

SHOP = {
    "notebooks/churn.ipynb": written(CHURN),
    "docs/api.json": json.dumps(API, separators=(",", ":")),
    "docs/openapi.yaml": (
        "openapi: 3.1.0\ninfo: {title: Shop, version: '1'}\npaths:\n  /orders:\n    get:\n"
        "      summary: List the orders\n      responses:\n        '200': {description: Orders}\n"
        "    post: {summary: Place an order, responses: {'201': {description: Placed}}}\n"
        "  /orders/{id}:\n    delete: {summary: Cancel an order}\ncomponents:\n  schemas:\n"
        "    Order:\n      type: object\n      properties: {id: {type: string}}\n"
    ),
    "web/pricing.ts": (
        "/** The price of an order with its discount. */\n"
        "export function priceOf(order: string, discount = 0): number {\n"
        "  return order.length * (1 - discount)\n}\n"
    ),
    "web/OrderRow.vue": (
        "<script setup lang=\"ts\">\nimport { priceOf } from './pricing'\n\n"
        "const props = defineProps<{ order: string }>()\nconst total = priceOf(props.order)\n"
        "</script>\n\n<template>\n  <li>{{ props.order }}: {{ total }}</li>\n</template>\n"
    ),
    "web/Cart.vue": (
        "<template>\n  <ul>\n"
        '    <order-row v-for="order in orders" :key="order" :order="order" />\n'
        "    <li>{{ priceOf(orders.join(), 0.1) }}</li>\n"
        '  </ul>\n  <button @click="placeOrder(orders)">Order</button>\n</template>\n\n'
        "<script setup lang=\"ts\">\nimport OrderRow from './OrderRow.vue'\n"
        "import { priceOf } from './pricing'\n\nconst orders = ['a', 'b']\n\n"
        "function placeOrder(chosen: string[]): number {\n"
        "  return chosen.map((order) => priceOf(order)).reduce((a, b) => a + b)\n}\n</script>\n"
    ),
    "server/discount.py": (
        '"""订单折扣。"""\n\n\ndef discount_of(level: int, total: float) -> float:\n'
        '    """根据客户等级计算订单折扣，折扣不超过总价的一半。"""\n'
        "    return min(total / 2, level * 0.05 * total)\n"
    ),
    "server/stock.py": (
        "# 商品の在庫数を確認する\ndef in_stock(item: str) -> bool:\n    return bool(item)\n"
    ),
}
