"""Reads OTLP's ExportTraceServiceRequest from its bytes: protobuf's wire format and the fields that tests look at."""

KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT"}


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of a message: bytes, or an int for everything else."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            width = 8 if kind == 1 else 4
            value, at = int.from_bytes(data[at:at + width], "little"), at + width
        yield tag >> 3, value


def attributes(pairs):
    out = {}
    for pair in pairs:
        entry = dict(fields(pair))
        (number, value), = fields(entry[2])
        if number == 3 and value >= 1 << 63:
            value -= 1 << 64
        out[entry[1].decode()] = value.decode() if number == 1 else value
    return out


def every(data, number):
    return [value for field, value in fields(data) if field == number]


def read_span(data):
    one = dict(fields(data))
    status = dict(fields(one.get(15, b"")))
    return {"traceId": one[1].hex(), "spanId": one[2].hex(), "traceState": one.get(3, b"").decode(), "parentSpanId": one.get(4, b"").hex(),
            "name": one[5].decode(), "kind": KINDS[one[6]], "start": one[7], "end": one[8], "attributes": attributes(every(data, 9)),
            "events": [{"name": dict(fields(e))[2].decode(), "attributes": attributes(every(e, 3))} for e in every(data, 11)],
            "links": [{"traceId": dict(fields(link))[1].hex(), "spanId": dict(fields(link))[2].hex(), "flags": dict(fields(link))[6]} for link in every(data, 13)],
            "status": {2: "ERROR"}.get(status.get(3), ""), "flags": one[16]}


def read_export_request(data):
    """All spans of a request, each with its resource and scope."""
    spans = []
    for resource_spans in every(data, 1):
        about = dict(fields(resource_spans))
        resource = attributes(every(about[1], 1))
        for scope_spans in every(resource_spans, 2):
            scope = dict(fields(dict(fields(scope_spans))[1]))
            for data_of_span in every(scope_spans, 2):
                span = read_span(data_of_span)
                span.update(resource=resource, scope=scope[1].decode(), scopeVersion=scope.get(2, b"").decode(),
                            schemaUrl=(about.get(3, b"") + dict(fields(scope_spans)).get(3, b"")).decode())
                spans.append(span)
    return spans
