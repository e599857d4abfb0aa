-- The rest is the same for every system: it reads SYSTEM, the table above, and knows no message itself. A
-- message may span segments, and a segment may have several messages.

local LENGTH_BYTES, KEY_BYTES = 4, 16
local proto = Proto(SYSTEM.filter, SYSTEM.title)
local NUMBER = { [1] = ProtoField.uint8, [2] = ProtoField.uint16, [4] = ProtoField.uint32, [8] = ProtoField.uint64 }

-- Fields
local registered, F = {}, {} -- F: by filter
for filter, field in pairs(SYSTEM.fields) do
    if field.kind == "ipv4" then
        F[filter] = ProtoField.ipv4(filter, field.title, field.meaning)
    elseif field.kind == "double" then
        F[filter] = ProtoField.double(filter, field.title, field.meaning)
    elseif NUMBER[field.size] then
        F[filter] = NUMBER[field.size](filter, field.title, base.DEC, field.values, nil, field.meaning)
    elseif field.size == KEY_BYTES then
        F[filter] = ProtoField.bytes(filter, field.title, base.NONE, field.meaning)
    elseif field.kind == "text" then
        F[filter] = ProtoField.string(filter, field.title, base.NONE, field.meaning)
    elseif field.kind == "bytes" then
        F[filter] = ProtoField.bytes(filter, field.title, base.NONE, field.meaning)
    else
        F[filter] = ProtoField.none(filter, field.title, field.meaning)
    end
    registered[#registered + 1] = F[filter]
end
proto.fields = registered

local F_MESSAGE, F_BODY = F[SYSTEM.filter .. ".message"], F[SYSTEM.filter .. ".body"]
local E_MALFORMED = ProtoExpert.new(
    SYSTEM.filter .. ".malformed", "Malformed message", expert.group.MALFORMED, expert.severity.ERROR)
proto.experts = { E_MALFORMED }
proto.prefs.port = Pref.uint("TCP port", SYSTEM.port, "on which the nodes listen")

-- A message in one line
-- The values of a message are tables with `shown`, the text, and `number` (a UInt64 if it has 8 bytes).

local function written(number) -- a sequence number: 17, or 3:17 for event 17 of epoch 3
    local epoch = number:rshift(SYSTEM.number_bits)
    if epoch == UInt64(0) then return tostring(number) end
    return tostring(epoch) .. ":" .. tostring(number - epoch:lshift(SYSTEM.number_bits))
end

local function filled(phrase, values)
    local said = phrase.texts[1]
    for index, wanted in ipairs(phrase.values) do
        local value = values[wanted.field]
        if not value or value.shown == "" then return nil end
        if wanted.optional and tostring(value.number) == "0" then return nil end
        local shown = value.shown
        if wanted.count then
            local count = values[wanted.count]
            if not count then return nil end
            local last = value.number + count.number - 1
            shown = value.seq and written(last) or tostring(last)
        end
        said = said .. shown .. phrase.texts[index + 1]
    end
    return said
end

local function reading(first, phrases, values)
    local said = { first }
    for _, phrase in ipairs(phrases) do
        said[#said + 1] = filled(phrase, values)
    end
    local inner = values[SYSTEM.messages] -- a nested message
    return table.concat(said, " ") .. (inner and ": " .. inner.shown or "")
end

-- Bodies
-- Each function adds the captured bytes to the tree and returns an error, if any: the message as a whole gets
-- one expert line.

local function number_in(range, size, double) -- a key's digits without leading zeros; else a number
    if double then return range:float() end
    if size == KEY_BYTES then return (range:bytes():tohex(true):gsub("^0+(.)", "%1")) end
    return size == 8 and range:uint64() or range:uint()
end

local function read_fields(tvb, start, fields, tree, values)
    local wrong
    for _, field in ipairs(fields) do
        if start + field.offset + field.size > tvb:len() then break end
        local range = tvb(start + field.offset, field.size)
        local number = number_in(range, field.size, field.double)
        local names = SYSTEM.fields[field.filter].values
        local name = names and names[number]
        tree:add(F[field.filter], range)
        if names and not name then wrong = "unknown " .. field.name .. " " .. tostring(number) end
        local shown = name or (field.seq and written(number)) or tostring(number)
        if field.ipv4 then shown = tostring(range:ipv4()) end
        if field.size == KEY_BYTES then shown = range:bytes():tohex(true):sub(1, SYSTEM.key_shown) end
        values[field.name] = { number = number, shown = shown, seq = field.seq }
    end
    return wrong
end

local function read_rows(tvb, start, length, tail, tree, values)
    local row, shown, wrong = tail.row, {}, nil
    if length % row.size ~= 0 then
        return length .. " bytes of rows of " .. row.size .. " bytes"
    end
    for at = start, start + length - row.size, row.size do
        if at + row.size > tvb:len() then return wrong end
        local item, own = tree:add(F[row.filter], tvb(at, row.size)), {}
        wrong = read_fields(tvb, at, row.fields, item, own) or wrong
        local said = reading(nil, row.reads, own)
        item:append_text(": " .. said)
        if #shown < SYSTEM.rows_shown then
            shown[#shown + 1] = said
        else
            shown[SYSTEM.rows_shown + 1] = SYSTEM.more
        end
    end
    values[tail.name] = { shown = table.concat(shown, " ") }
    return wrong
end

local function read_numbers(tvb, start, length, list, tree, values)
    local absent = list.if_zero and tostring(values[list.if_zero].number) ~= "0"
    if absent or length == 0 then return 0 end
    local count = values[list.count].number
    if 4 * count > length then return 0, count .. " " .. list.name .. " in " .. length .. " bytes" end
    local sum = UInt64(0)
    for at = start, start + 4 * (count - 1), 4 do
        if at + 4 > tvb:len() then return 4 * count end
        tree:add(F[list.filter], tvb(at, 4))
        sum = sum + tvb(at, 4):uint()
    end
    values[list.name] = { number = sum, shown = tostring(sum) }
    return 4 * count
end

local function read_bytes(tvb, start, length, tail, tree, values)
    for _, list in ipairs(tail.numbers) do
        local read, wrong = read_numbers(tvb, start, length, list, tree, values)
        if wrong then return wrong end
        start, length = start + read, length - read
    end
    local there = math.min(length, tvb:len() - start)
    if there > 0 then
        local range = tvb(start, there)
        if tail.kind == "text" then
            tree:add_packet_field(F[tail.filter], range, ENC_UTF_8)
            values[tail.name] = { shown = range:string(ENC_UTF_8) }
        else
            tree:add(F[tail.filter], range)
        end
    end
end

local HEADER_TYPE = SYSTEM.header[3]
local read_body

local function read_message_within(tvb, start, length, tail, tree, values, depth)
    if length < 1 then return "no message in " .. tail.name end
    if depth >= SYSTEM.nested_max then
        return "more than " .. SYSTEM.nested_max .. " messages within each other"
    end
    if start >= tvb:len() then return end
    local item, kind = tree:add(F[tail.filter], tvb(start, math.min(length, tvb:len() - start))), {}
    local wrong = read_fields(tvb, start, { { name = "type", filter = HEADER_TYPE.filter, offset = 0, size = 1 } }, item, kind)
    local message, own = SYSTEM.messages[kind.type.number], {}
    if not message then return wrong or "unknown message type " .. kind.type.shown end
    wrong = read_body(tvb, start + 1, length - 1, message, item, own, depth + 1)
    local said = reading(message.name, message.reads, own)
    item:append_text(": " .. said)
    values[SYSTEM.messages] = { shown = said }
    return wrong
end

function read_body(tvb, start, length, message, tree, values, depth)
    local rest = length - message.size
    if rest < 0 or (rest > 0 and not message.tail) then
        return "a body of " .. length .. " bytes, its head has " .. message.size
    end
    local wrong = read_fields(tvb, start, message.fields, tree, values)
    if wrong or not message.tail or start + message.size > tvb:len() then return wrong end
    local read = message.tail.kind == "rows" and read_rows
        or message.tail.kind == "message" and read_message_within or read_bytes
    return read(tvb, start + message.size, rest, message.tail, tree, values, depth)
end

-- Messages
local function header_at(tvb, at)
    local frame = { length = LENGTH_BYTES + tvb(at, 4):uint(), type = tvb(at + 5, 1):uint() }
    local version, flags = tvb(at + 4, 1):uint(), tvb(at + 6, 2):uint()
    if version ~= SYSTEM.version then
        frame.wrong = "protocol version " .. version
    elseif flags ~= 0 then
        frame.wrong = string.format("unknown flags 0x%04x", flags)
    elseif frame.length < SYSTEM.header_bytes or frame.length > SYSTEM.limit then
        frame.wrong = "a length of " .. (frame.length - LENGTH_BYTES) .. " bytes"
    end
    return frame
end

local function show_info(pinfo, said)
    local before = pinfo.private[SYSTEM.filter]
    pinfo.private[SYSTEM.filter] = "told"
    pinfo.cols.protocol = SYSTEM.title
    if before then
        pinfo.cols.info:append("; " .. said)
    else
        pinfo.cols.info:set(said)
    end
    pinfo.cols.info:fence()
end

local function read_message(tvb, at, frame, pinfo, tree)
    local there = math.min(frame.length, tvb:len() - at)
    local item = tree:add(proto, tvb(at, there))
    local message, values = SYSTEM.messages[frame.type], {}
    read_fields(tvb, at, SYSTEM.header, item, {})
    local body, length = at + SYSTEM.header_bytes, frame.length - SYSTEM.header_bytes
    local wrong
    if message then
        wrong = read_body(tvb, body, length, message, item, values, 0)
    else
        wrong = "unknown message type " .. frame.type
    end
    local said = message and reading(message.name, message.reads, values) or "type " .. frame.type
    if there < frame.length then said = said .. " (cut off)" end
    if wrong then
        said = said .. " (malformed: " .. wrong .. ")"
        if body < tvb:len() and length > 0 then item:add(F_BODY, tvb(body, math.min(length, tvb:len() - body))) end
        item:add_proto_expert_info(E_MALFORMED, wrong)
    end
    item:add(F_MESSAGE, tvb(at, there), said):set_generated()
    item:append_text(", " .. said)
    show_info(pinfo, said)
end

-- Streams
-- If a capture begins within a connection, or lacks segments, search for the next message: a plausible header
-- with a known type and a fitting length. Skipped bytes are not malformed; only a bad header directly after a
-- good message is, once.

local stream_of, completeness_of = Field.new("tcp.stream"), Field.new("tcp.completeness")
local OUT_OF_STEP = {
    Field.new("tcp.analysis.lost_segment"), Field.new("tcp.analysis.out_of_order"),
    Field.new("tcp.analysis.retransmission"), Field.new("tcp.analysis.fast_retransmission"),
}
local in_step = {} -- by direction: whether the last message was dissected to its end
local found = {} -- by frame and position: the decision of the first pass

function proto.init()
    in_step, found = {}, {}
end

local function is_out_of_step()
    for _, field in ipairs(OUT_OF_STEP) do
        if field() then return true end
    end
    return false
end

local function begins_with_connection()
    local seen = completeness_of() -- its lowest two bits: SYN and SYN-ACK
    return seen ~= nil and seen.value % 4 ~= 0
end

local function direction_of(pinfo)
    return tostring(stream_of()) .. ":" .. pinfo.src_port
end

local function could_be(tvb, at)
    local frame = header_at(tvb, at)
    local message = SYSTEM.messages[frame.type]
    if frame.wrong or not message then return false end
    local rest = frame.length - SYSTEM.header_bytes - message.size
    return rest == 0 or (rest > 0 and message.tail ~= nil)
end

local MARK = string.char(SYSTEM.version) .. ".%z%z"

local function next_start(tvb, from)
    local raw = tvb:raw()
    local mark = raw:find(MARK, from + LENGTH_BYTES + 1)
    while mark do
        local at = mark - 1 - LENGTH_BYTES
        if could_be(tvb, at) then return at end
        mark = raw:find(MARK, mark + 1)
    end
    return tvb:len()
end

local function after_bad_header(tvb, at, wrong, pinfo, tree)
    local key = pinfo.number .. ":" .. at .. ":" .. tvb:len()
    local verdict = found[key]
    if not verdict then
        local direction = direction_of(pinfo)
        local followed = in_step[direction]
        if followed == nil then followed = begins_with_connection() end
        verdict = { is_malformed = followed and not is_out_of_step() }
        verdict.start = verdict.is_malformed and tvb:len() or next_start(tvb, at)
        in_step[direction] = false
        found[key] = verdict
    end
    if verdict.start == at then return at end
    local item = tree:add(proto, tvb(at, verdict.start - at), SYSTEM.title .. ", not from a message's start")
    if verdict.is_malformed then
        item:set_text(SYSTEM.title .. ", bad header: " .. wrong)
        item:add(F_BODY, tvb(at))
        item:add_proto_expert_info(E_MALFORMED, "bad header: " .. wrong)
        show_info(pinfo, "bad header: " .. wrong)
    elseif verdict.start == tvb:len() then
        show_info(pinfo, "bytes within a message")
    end
    return verdict.start
end

function proto.dissector(tvb, pinfo, tree)
    local at = 0
    while at < tvb:len() do
        local left = tvb:reported_len() - at
        if tvb:len() - at < SYSTEM.header_bytes then
            pinfo.desegment_offset, pinfo.desegment_len = at, DESEGMENT_ONE_MORE_SEGMENT
            return tvb:len()
        end
        local frame = header_at(tvb, at)
        if frame.wrong then
            at = after_bad_header(tvb, at, frame.wrong, pinfo, tree)
        else
            if frame.length > left and pinfo.can_desegment > 0 then
                pinfo.desegment_offset, pinfo.desegment_len = at, frame.length - left
                return tvb:len()
            end
            in_step[direction_of(pinfo)] = true
            read_message(tvb, at, frame, pinfo, tree)
            at = at + frame.length
        end
    end
    return tvb:len()
end

-- Port
local ports = DissectorTable.get("tcp.port")
local bound = SYSTEM.port
ports:add(bound, proto)

function proto.prefs_changed()
    if proto.prefs.port ~= bound then
        ports:remove(bound, proto)
        bound = proto.prefs.port
        ports:add(bound, proto)
    end
end
