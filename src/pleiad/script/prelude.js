// What a script finds in its context: getContext(), __, console, ErrorCodes, and errors with a number.
//
// Nothing here reaches the database. Operations are queued as JSON; when the script has returned, the host takes
// them ("drain"), does them in the transaction and hands the results back ("resume"), which calls the callbacks.
// The last expression is the function through which the host does so; a script cannot name it.

(function () {
  "use strict";
  const { parse, stringify } = JSON;
  const { apply } = Reflect;
  const { join } = Array.prototype;
  const now = Date.now;
  const evaluate = eval; // called by this name, it evaluates in the global scope
  const then = Promise.prototype.then;
  const ROUND_OPERATIONS = 100;
  const ROUND_CHARS = 1 << 21;
  const ARGUMENTS_DEPTH = 1024;

  let settings = {};
  let endsAt = 0;
  let isSpent = false;
  let failure = null;
  let logged = "";
  let round = [];
  let waiting = [];
  let functions = {};

  // -- errors ---------------------------------------------------------------------------------------

  const ErrorCodes = Object.freeze({
    BadRequest: 400,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    RequestEntityTooLarge: 413,
    RetryWith: 449,
    InternalServerError: 500,
  });

  function numbered(target, values, newTarget) {
    const hasNumber = typeof values[0] === "number" && values.length > 1;
    const error = Reflect.construct(target, hasNumber ? [values[1]] : values, newTarget);
    if (hasNumber) {
      error.number = values[0];
      error.body = String(values[1]);
    }
    return error;
  }

  // new Error(404, "text") is an error with a number; all other forms are what they always were.
  const NumberedError = new Proxy(Error, {
    construct: numbered,
    apply: (target, _, values) => numbered(target, values, NumberedError),
  });

  function refuse(number, text) {
    throw new NumberedError(number, text);
  }

  function shown(error) {
    if (error === null) return "null, or no memory was left for an error";
    return typeof error === "object" && !(error instanceof Error) ? stringify(error) : String(error);
  }

  // The frames of this file say nothing to the author of a script.
  function ownFrames(stack) {
    const lines = stack.split("\n").filter((line) => !/^    at (construct \(native|numbered \()/.test(line));
    const end = lines.findIndex((line) => /^    at (start|resume|deliver|call|compiled?) \(/.test(line));
    return lines.slice(0, end < 0 ? undefined : end).join("\n");
  }

  function describe(error) {
    try {
      const stack = typeof error === "object" && typeof error?.stack === "string" ? error.stack : "";
      const number = typeof error?.number === "number" ? error.number : 0;
      return { message: String(shown(error)).toWellFormed(), stack: ownFrames(stack.toWellFormed()), number };
    } catch {
      return { message: "a value that cannot be shown as text", stack: "" };
    }
  }

  function fail(error, isCompile) {
    failure = failure || { ...describe(error), isCompile: isCompile === true };
  }

  // -- request and response -------------------------------------------------------------------------

  function message(body, isWritable, values) {
    let current = body;
    let isSet = false;

    function check(name) {
      if (name !== "Body" && !(name in values)) refuse(ErrorCodes.BadRequest, "Cannot set new values: " + name);
      if (name !== "Body" || !isWritable) refuse(ErrorCodes.Forbidden, "Not a writable property: " + name);
    }

    const self = {
      getBody: () => current,
      setBody(value) {
        check("Body");
        if (typeof value === "string" && value.length > settings.bodyChars) {
          refuse(ErrorCodes.RequestEntityTooLarge, "The message would be larger than a response may be.");
        }
        current = value;
        isSet = true;
      },
      appendBody(value) {
        self.setBody(current === undefined || current === null ? value : current + value);
      },
      getValue: (name) => (name === "Body" ? current : values[name]),
      setValue(name, value) {
        check(name);
        self.setBody(value);
      },
      appendValue(name, value) {
        check(name);
        self.appendBody(value);
      },
    };
    return { self, text: () => (isSet ? stringify(current) : undefined) };
  }

  let request = message(undefined, false, {});
  let response = null;

  function theResponse() {
    if (response === null) refuse(ErrorCodes.Forbidden, "There is no response in a pre-trigger.");
    return response.self;
  }

  // -- operations -----------------------------------------------------------------------------------

  function queue(operation, deliver) {
    if (isSpent || now() >= endsAt) return false;
    const text = stringify(operation);
    if (text.length > settings.bodyChars) {
      refuse(ErrorCodes.RequestEntityTooLarge, "The operation is larger than a request may be.");
    }
    waiting.push({ text, deliver });
    return true;
  }

  function optionsAndCallback(options, callback) {
    if (callback === undefined && typeof options === "function") return [{}, options];
    if (options === undefined || options === null) options = {};
    if (typeof options !== "object") {
      refuse(ErrorCodes.BadRequest, 'The "options" parameter must be an object, not: ' + typeof options);
    }
    if (callback !== undefined && callback !== null && typeof callback !== "function") {
      refuse(ErrorCodes.BadRequest, 'The "callback" parameter must be a function, not: ' + typeof callback);
    }
    return [options, callback];
  }

  function bare(link) {
    return link.replace(/^\/|\/$/g, "");
  }

  function checkCollection(link) {
    if (typeof link !== "string") refuse(ErrorCodes.BadRequest, 'Invalid collection link: "' + link + '".');
    const given = bare(link);
    if (given !== bare(settings.selfLink) && given !== settings.altLink) {
      refuse(ErrorCodes.BadRequest, 'The link "' + link + '" is not the collection that the script runs in.');
    }
  }

  function documentOf(link) {
    const parts = typeof link === "string" ? bare(link).split("/") : [];
    if (parts.length !== 6 || parts[0] !== "dbs" || parts[2] !== "colls" || parts[4] !== "docs") {
      refuse(ErrorCodes.BadRequest, 'Invalid document link: "' + link + '".');
    }
    checkCollection(parts.slice(0, 4).join("/"));
    return { name: parts[5], isRid: parts.slice(0, 4).join("/") === bare(settings.selfLink) };
  }

  function textOf(body, options, makesId) {
    // Items are indexed by the policy of their container, as requests have it too: the option is checked, and no more.
    const { indexAction = "default" } = options;
    if (indexAction !== "default" && indexAction !== "include" && indexAction !== "exclude") {
      refuse(ErrorCodes.BadRequest, "The option 'indexAction' must be one of default, include, exclude.");
    }
    if (typeof body === "string") {
      try {
        body = parse(body);
      } catch {
        body = null;
      }
    }
    if (body === null || typeof body !== "object") {
      refuse(ErrorCodes.BadRequest, "The document body must be an object or the JSON text of an object.");
    }
    if (makesId && body.id === undefined && !options.disableAutomaticIdGeneration) body.id = newId();
    return stringify(body);
  }

  let ids = 0;
  function newId() {
    ids += 1;
    return settings.idPrefix + ids.toString(16).padStart(12, "0");
  }

  function deliverTo(callback, resourceOf) {
    return function deliver(result) {
      if (result.error) {
        const error = new NumberedError(result.error[0], result.error[1]);
        if (!callback) throw error;
        callback(error);
      } else if (callback) {
        callback(undefined, resourceOf(result), result.options || {});
      }
    };
  }

  function write(kind, fields, text, callback) {
    // The host answers with what it adds to the text, so that the text itself is not sent back.
    const written = (result) => Object.assign(parse(text), result.system);
    return queue({ do: kind, ...fields, text }, deliverTo(callback, written));
  }

  function feed(kind, fields, options, callback) {
    const { pageSize, continuation } = options;
    const operation = { do: kind, ...fields, pageSize, continuation };
    return queue(operation, deliverTo(callback, (result) => result.resources));
  }

  const collection = {
    getSelfLink: () => settings.selfLink,
    getAltLink: () => settings.altLink,

    createDocument(link, body, options, callback) {
      checkCollection(link);
      [options, callback] = optionsAndCallback(options, callback);
      return write("create", {}, textOf(body, options, true), callback);
    },

    upsertDocument(link, body, options, callback) {
      checkCollection(link);
      [options, callback] = optionsAndCallback(options, callback);
      return write("upsert", { etag: options.etag }, textOf(body, options, true), callback);
    },

    replaceDocument(link, body, options, callback) {
      const document = documentOf(link);
      [options, callback] = optionsAndCallback(options, callback);
      return write("replace", { document, etag: options.etag }, textOf(body, options, false), callback);
    },

    deleteDocument(link, options, callback) {
      const document = documentOf(link);
      [options, callback] = optionsAndCallback(options, callback);
      return queue({ do: "delete", document, etag: options.etag }, deliverTo(callback, () => undefined));
    },

    readDocument(link, options, callback) {
      const document = documentOf(link);
      [options, callback] = optionsAndCallback(options, callback);
      const operation = { do: "read", document, ifNoneMatch: options.ifNoneMatch };
      return queue(operation, deliverTo(callback, (result) => result.resource));
    },

    readDocuments(link, options, callback) {
      checkCollection(link);
      [options, callback] = optionsAndCallback(options, callback);
      return feed("feed", {}, options, callback);
    },

    queryDocuments(link, query, options, callback) {
      checkCollection(link);
      if (typeof query !== "string" && (query === null || typeof query !== "object")) {
        refuse(ErrorCodes.BadRequest, 'The "filterQuery" parameter must be a string or an object.');
      }
      [options, callback] = optionsAndCallback(options, callback);
      return feed("query", { query: typeof query === "string" ? { query } : query }, options, callback);
    },
  };

  // -- queries by functions -------------------------------------------------------------------------

  function order(sign, key) {
    return {
      isWhole: true,
      apply(values) {
        const keyed = values.map((value) => ({ value, key: key(value) }));
        keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0));
        return keyed.map((each) => each.value);
      },
    };
  }

  function needFunction(value, what) {
    if (typeof value !== "function") refuse(ErrorCodes.BadRequest, "The " + what + " must be a function.");
    return value;
  }

  function unwound(inner, result) {
    needFunction(inner, "selector of the inner collection");
    return (values) =>
      values.flatMap((value) => {
        const members = inner(value);
        if (!Array.isArray(members)) return [];
        return typeof result === "function" ? members.map((member) => result(value, member)) : members;
      });
  }

  // Each makes a step from the first arguments of its function, and says how many of them it took.
  const STEPS = {
    filter(values) {
      const predicate = needFunction(values[0], "predicate");
      return [{ apply: (all) => all.filter((each) => predicate(each)) }, 1];
    },
    map(values) {
      const mapping = needFunction(values[0], "mapping");
      return [{ apply: (all) => all.map((each) => mapping(each)) }, 1];
    },
    pluck(values) {
      const name = values[0];
      if (typeof name !== "string" || name === "") refuse(ErrorCodes.BadRequest, "The name of a property must be a text.");
      return [{ apply: (all) => all.map((each) => each?.[name]) }, 1];
    },
    flatten(values) {
      const depth = values[0] === true ? 1 : Infinity;
      return [{ apply: (all) => all.flat(depth) }, typeof values[0] === "boolean" ? 1 : 0];
    },
    sortBy: (values) => [order(1, needFunction(values[0], "key")), 1],
    sortByDescending: (values) => [order(-1, needFunction(values[0], "key")), 1],
    unwind: (values) => [{ apply: unwound(values[0], values[1]) }, typeof values[1] === "function" ? 2 : 1],
  };

  function run(steps, options, callback) {
    [options, callback] = optionsAndCallback(options, callback);
    const isWhole = steps.some((step) => step.isWhole);
    const found = [];
    if (!callback) {
      theResponse();
      callback = (error, values) => {
        if (error) throw error;
        theResponse().setBody(values);
      };
    }

    function take(error, values, info) {
      if (error) return callback(error);
      if (isWhole) {
        found.push(...values);
        if (info.continuation) {
          if (!next(info.continuation)) throw new NumberedError(ErrorCodes.RequestEntityTooLarge, "There are too many documents to sort.");
          return undefined;
        }
        values = found;
      }
      return callback(undefined, steps.reduce((all, step) => step.apply(all), values), info);
    }

    function next(continuation) {
      return feed("feed", {}, { pageSize: isWhole ? -1 : options.pageSize, continuation }, take);
    }

    return { isAccepted: next(options.continuation) };
  }

  function chain() {
    const steps = [];
    const link = {
      value(first, second) {
        return typeof first === "function" ? run(steps, second, first) : run(steps, first, second);
      },
    };
    for (const name of Object.keys(STEPS)) {
      link[name] = function (...values) {
        steps.push(STEPS[name](values)[0]);
        return link;
      };
    }
    return link;
  }

  collection.chain = chain;
  for (const name of Object.keys(STEPS)) {
    collection[name] = function (...values) {
      const [step, taken] = STEPS[name](values);
      return run([step], values[taken], values[taken + 1]);
    };
  }

  // -- what scripts see -----------------------------------------------------------------------------

  const context = {
    getCollection: () => collection,
    getRequest: () => request.self,
    getResponse: theResponse,
    abort(error) {
      fail(error === undefined ? new NumberedError("The script was aborted.") : error);
      throw error;
    },
  };

  const console = {
    log(format, ...values) {
      if (!settings.isLogging || logged.length >= settings.logChars) return;
      let index = 0;
      const text = String(format).replace(/%([%s])/g, (_, what) => (what === "%" ? "%" : String(values[index++])));
      const rest = values.slice(index).map((value) => " " + String(value));
      logged += (logged ? "\n" : "") + text + rest.join("");
      logged = logged.slice(0, settings.logChars);
    },
  };

  const shortcut = Object.create(collection, {
    request: { get: () => request.self, enumerable: true },
    response: { get: theResponse, enumerable: true },
  });

  globalThis.Error = NumberedError;
  Object.assign(globalThis, { getContext: () => context, __: shortcut, console, ErrorCodes });

  // -- what the host calls --------------------------------------------------------------------------

  // The engine keeps a long sum of strings as a rope, which the host cannot read.
  function flat(...parts) {
    return apply(join, parts, [""]);
  }

  function compile(source) {
    const text = source.replace(/[;\s]+$/, "");
    let value;
    try {
      value = evaluate("(" + text + "\n)");
    } catch (error) {
      const named = /^(?:\/\/[^\n]*\n|\/\*[\s\S]*?\*\/|\s)*(?:async\s+)?function\s+([A-Za-z_$][\w$]*)/.exec(source);
      if (named === null) throw error;
      evaluate(source);
      value = evaluate(named[1]);
    }
    if (typeof value !== "function") throw new SyntaxError("the body of a script must be a function");
    return value;
  }

  function compiled(source) {
    try {
      return compile(source);
    } catch (error) {
      fail(error, true);
      return null;
    }
  }

  function checkWellFormed(name, value) {
    if (name.isWellFormed() && (typeof value !== "string" || value.isWellFormed())) return value;
    throw new SyntaxError("a string has a lone surrogate escape, which is no character");
  }

  function checkDepth(value) {
    let level = [value];
    for (let depth = 0; level.length > 0; depth += 1) {
      if (depth > ARGUMENTS_DEPTH) throw new SyntaxError("the JSON is nested too deeply");
      const below = [];
      for (const each of level) {
        for (const child of Array.isArray(each) ? each : Object.values(each)) {
          if (typeof child === "object" && child !== null) below.push(child);
        }
      }
      level = below;
    }
  }

  // They come as the client's text: reading much of it takes long, and here it holds up this script alone.
  function argumentsOf(text) {
    const value = parse(text, /\\u[dD][89a-fA-F]/.test(text) ? checkWellFormed : undefined);
    if (value === null) return [];
    if (typeof value !== "object") throw new SyntaxError("the arguments of a stored procedure are an array");
    checkDepth(value);
    return value;
  }

  const COMMANDS = {
    start(text) {
      settings = parse(text);
      let values;
      try {
        values = argumentsOf(settings.arguments);
      } catch (error) {
        if (error instanceof SyntaxError) return stringify({ failure: { message: error.message, isArguments: true } });
        throw error;
      }
      endsAt = now() + settings.acceptMs;
      isSpent = settings.isSpent;
      const { operation } = settings;
      request = message(settings.requestBody, settings.isRequestWritable, { OperationType: operation });
      request.self.getOperationType = () => operation;
      const { responseBody = "" } = settings;
      response = settings.hasResponse ? message(responseBody, true, {}) : null;
      if (response !== null) {
        response.self.getMaxResourceQuota = () => settings.quota;
        response.self.getResourceQuotaCurrentUsage = () => settings.usage;
      }
      const script = compiled(settings.source);
      try {
        const result = script && apply(script, undefined, values);
        if (result instanceof Promise) then.call(result, undefined, fail);
      } catch (error) {
        fail(error);
      }
      return COMMANDS.drain();
    },

    resume(text) {
      const answer = parse(text);
      isSpent = answer.isSpent;
      // A round may end before its last operation; what was not done begins the next one.
      const { results } = answer;
      const delivered = round;
      round = delivered.slice(results.length);
      try {
        results.forEach((result, index) => delivered[index].deliver(result));
      } catch (error) {
        fail(error);
      }
      return COMMANDS.drain();
    },

    // What the script wants now. A promise may want more or less a moment later, so it is asked again then.
    drain() {
      if (failure !== null) return stringify({ failure, log: logged.toWellFormed() });
      waiting = round.concat(waiting);
      round = [];
      let chars = 0;
      let count = 0;
      while (count < waiting.length && count < ROUND_OPERATIONS && chars < ROUND_CHARS) {
        chars += waiting[count].text.length;
        count += 1;
      }
      if (count > 0) {
        round = waiting.slice(0, count);
        waiting = waiting.slice(count);
        return flat('{"operations":[', round.map((each) => each.text).join(","), "]}");
      }
      try {
        const result = { requestBody: request.text(), responseBody: response === null ? undefined : response.text() };
        return stringify({ done: { ...result, log: logged.toWellFormed() } });
      } catch (error) {
        fail(error);
        return COMMANDS.drain();
      }
    },

    define(text) {
      const sources = parse(text);
      functions = Object.create(null);
      for (const name of Object.keys(sources)) {
        functions[name] = compiled(sources[name]);
        if (functions[name] === null) return stringify({ failure });
      }
      return stringify({ value: [] });
    },

    // Values travel in lists of one element, and undefined as a list of none.
    call(text) {
      const [name, values] = parse(text);
      try {
        const value = functions[name](...values.map((each) => each[0]));
        const isNothing = value === undefined || typeof value === "function" || Number.isNaN(value);
        const answer = stringify(isNothing ? [] : [value]);
        return flat('{"value":', answer === "[null]" && value !== null ? "[]" : answer, "}");
      } catch (error) {
        return stringify({ failure: describe(error) });
      }
    },
  };

  return (command, text) => COMMANDS[command](text);
})();
