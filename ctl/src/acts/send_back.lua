-- Sends one dead letter back to the queue in which it died: all of it, or nothing. KEYS: the queue in which it is now.
-- ARGV: its id, and for how many ms it waits. Returns what became of it, or the error with which its former queue
-- refuses it.
local here, id, delay = KEYS[1], ARGV[1], ARGV[2]
local ADDED = {
  ['dq-queue'] = true,
  ['dq-reason'] = true,
  ['dq-error'] = true,
  ['dq-attempts'] = true,
  ['dq-died'] = true,
}

local function fields(list)
  local named = {}
  for at = 1, #list, 2 do named[list[at]] = list[at + 1] end
  return named
end

local found = redis.call('DQ.GET', here, id)
local letter = found and fields(found) or {}
local headers = fields(letter.headers or {})
local from = headers['dq-queue']
if letter.state == 'inflight' and headers['dq-reason'] then return 'inflight' end
if (letter.state ~= 'ready' and letter.state ~= 'delayed') or not headers['dq-reason'] then return 'none' end

-- Whoever pushes here can write these headers, so the queue that they name must really move its dead messages here.
local info = from and redis.call('DQ.INFO', from)
if not info or fields(info).deadforward ~= 'QUEUE ' .. here then return 'foreign' end

local push = { 'DQ.PUSH', from, letter.payload, 'DELAY', delay }
local function add(...)
  for _, word in ipairs({ ... }) do push[#push + 1] = word end
end
-- The server has given it such an id, and gives it another one.
local isGenerated = string.match(id, '^%d+%-%d+$') and #string.match(id, '^%d+') >= 12
if not isGenerated then add('ID', id) end
if letter.priority ~= 0 then add('PRIORITY', letter.priority) end
local own = {}
for at = 1, #(letter.headers or {}), 2 do
  if not ADDED[letter.headers[at]] then
    own[#own + 1] = letter.headers[at]
    own[#own + 1] = letter.headers[at + 1]
  end
end
if #own > 0 then add('HEADERS', #own / 2, unpack(own)) end

-- Without the right to remove it here, it is not pushed there. No message has this id.
redis.call('DQ.CANCEL', here, '0-0')
local pushed = redis.pcall(unpack(push))
-- DEDUPE refuses the id of a message that was moved away, for a time.
if not pushed and not isGenerated and not redis.call('DQ.GET', from, id) then
  add('REPLACE')
  pushed = redis.pcall(unpack(push))
end
if not pushed or (pushed.err and string.find(pushed.err, '^DEADID')) then return 'known' end
if pushed.err then return pushed end
redis.call('DQ.CANCEL', here, id)
return 'sent'
