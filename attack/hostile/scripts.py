"""JavaScript that does not want to end: it loops, allocates, recurses, floods the queue of operations or its answer.

Stored procedures are called in the partition of the hostile items; functions are used by a query; a trigger goes with
a write.
"""

from __future__ import annotations

_CONTEXT = "var c = getContext(), d = c.getCollection(), r = c.getResponse();"

PROCEDURES: dict[str, str] = {
    "loop": "function () { while (true) {} }",
    "loop of promises": "function () { function f() { Promise.resolve().then(f); } f(); }",
    "recursion": "function () { function f(n) { return f(n + 1) + 1; } return f(0); }",
    "recursion in sort": "function () { var a = []; for (var i = 0; i < 1e6; i++) a.push(i); "
    "while (true) a.sort(function (x, y) { return Math.random() - 0.5; }); }",
    "allocates arrays": "function () { var a = []; while (true) a.push(new Array(1000).fill('x')); }",
    "allocates a string": "function () { var s = 'x'; while (true) s += s; }",
    "repeat": "function () { return 'x'.repeat(500000000).length; }",
    "typed arrays": "function () { var a = []; while (true) a.push(new Uint8Array(1 << 24)); }",
    "join of a huge array": "function () { return new Array(4294967295).join('x'); }",
    "big numbers": "function () { var x = 3n; while (true) x = x ** 3n; }",
    "one big power": "function () { return (2n ** 100000000n * 3n ** 10000000n).toString().length; }",
    "pattern": "function () { return /^(a+)+$/.test('a'.repeat(60) + '!'); }",
    "pattern in replace": "function () { return ('a'.repeat(60000) + '!').replace(/(a|a)*$/g, 'b').length; }",
    "JSON that is deep": "function () { var a = []; for (var i = 0; i < 1e6; i++) a = [a]; return JSON.stringify(a); }",
    "JSON that is long": "function () { var a = []; for (var i = 0; i < 1e6; i++) a.push('xxxxxxxxxx'); "
    "for (;;) JSON.parse(JSON.stringify(a)); }",
    "answer of 40 MB": f"function () {{ {_CONTEXT} r.setBody('x'.repeat(40000000)); }}",
    "answer that grows": f"function () {{ {_CONTEXT} r.setBody('x'); for (;;) r.appendBody('x'.repeat(1000000)); }}",
    "log without end": "function () { for (;;) console.log('x'.repeat(100000)); }",
    "a million operations": f"function () {{ {_CONTEXT} for (var i = 0; i < 1e6; i++) "
    "d.queryDocuments(d.getSelfLink(), 'SELECT * FROM c', function () {}); }",
    "a million creates": f"function () {{ {_CONTEXT} for (var i = 0; i < 1e6; i++) "
    "d.createDocument(d.getSelfLink(), {id: 's' + i, pk: 'p', text: 'x'.repeat(1000)}); }",
    "operations without end": f"function () {{ {_CONTEXT} function f() {{ "
    "d.queryDocuments(d.getSelfLink(), 'SELECT VALUE 1', {}, f); } f(); }",
    "pages of 4 MB": f"function () {{ {_CONTEXT} function f() {{ for (var i = 0; i < 50; i++) "
    "d.queryDocuments(d.getSelfLink(), 'SELECT * FROM c', {pageSize: 1000}, function () {}); "
    "d.queryDocuments(d.getSelfLink(), 'SELECT * FROM c', {pageSize: 1000}, f); } f(); }",
    "keeps all pages": f"function () {{ {_CONTEXT} var all = []; function f(e, x) {{ all.push(x); "
    "d.queryDocuments(d.getSelfLink(), 'SELECT * FROM c', {pageSize: 1000}, f); } f(); }",
    "hostile query inside": f"function () {{ {_CONTEXT} d.queryDocuments(d.getSelfLink(), 'SELECT VALUE COUNT(1) "
    "FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a JOIN w IN c.a', {}, function (e, x) { r.setBody(x); }); }",
    "query of very many results inside": f"function () {{ {_CONTEXT} d.queryDocuments(d.getSelfLink(), 'SELECT VALUE 1 "
    "FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a', {}, function (e, x) { r.setBody(e); }); }",
    "long query inside": f"function () {{ {_CONTEXT} var q = 'SELECT VALUE 1 FROM c WHERE c.n=1'; "
    "while (q.length < 262000) q += ' OR c.n=1'; "
    "for (var i = 0; i < 30; i++) d.queryDocuments(d.getSelfLink(), q + i, {}, function () {}); }",
    "getters": "function () { function f() { for (;;) {} } return new Proxy({}, {get: f, ownKeys: f}); }",
    "answers with itself": f"function () {{ {_CONTEXT} var a = {{}}; a.a = a; r.setBody(a); }}",
    "toJSON": f"function () {{ {_CONTEXT} r.setBody({{toJSON: function () {{ for (;;) {{}} }}}}); }}",
    "generators": "function () { function* g() { for (;;) yield [].concat(new Array(1000)); } for (var x of g()) {} }",
    "breaks the prelude": "function () { Object.prototype.toJSON = function () { return 'spoiled'; }; "
    "Array.prototype.push = function () { for (;;) {} }; JSON.stringify = function () { return '}{'; }; "
    f"{_CONTEXT} r.setBody([1]); }}",
}

FUNCTIONS: dict[str, str] = {
    "spin": "function (x) { while (true) {} }",
    "slow": "function (x) { var n = 0; for (var i = 0; i < 3e6; i++) n += i; return n; }",
    "wide": "function (x) { return 'x'.repeat(5000000); }",
    "deep": "function (x) { var a = 1; for (var i = 0; i < 20000; i++) a = [a]; return a; }",
}
TRIGGER_LOOP = "function () { while (true) {} }"
TRIGGER_FLOOD = (
    "function () { var d = getContext().getCollection(); for (var i = 0; i < 1e5; i++) "
    "d.queryDocuments(d.getSelfLink(), 'SELECT * FROM c', function () {}); }"
)
