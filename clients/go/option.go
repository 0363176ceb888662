package dq

import "time"

// Each option is of the types of those commands that know it, so an option that means nothing does not compile.
type (
	// PushOption is an option of [Queue.Push], [Queue.PushMany] and [Queue.PushAndWait].
	PushOption interface{ forPush(*command) }
	// ScheduleOption is an option of [Queue.Schedule].
	ScheduleOption interface{ forSchedule(*command) }
	// FollowOption is an option of [Queue.Follow].
	FollowOption interface{ forFollow(*command) }
	// RescheduleOption is an option of [Queue.Reschedule].
	RescheduleOption interface{ forReschedule(*command) }
	// PromoteOption is an option of [Queue.Promote].
	PromoteOption interface{ forPromote(*command) }
	// RedriveOption is an option of [Queue.Redrive].
	RedriveOption interface{ forRedrive(*command) }
	// PurgeOption is an option of [Queue.Purge].
	PurgeOption interface{ forPurge(*command) }
	// Setting is an option of [Queue.Declare], [Queue.Create] and [Queue.Alter]; docs/settings.md describes them.
	Setting interface{ forSettings(*command) }
	// PeekOption is an option of [Queue.Peek] and [Queue.Len].
	PeekOption interface{ forPeek(*command) }

	// EachOption is an option of messages that are pushed, of those of a schedule, and of one that follows a batch.
	EachOption interface {
		PushOption
		ScheduleOption
		FollowOption
	}
)

// command is what options are written to.
type command struct {
	args    []any
	ids     []string
	headers map[string]string
	retain  bool
}

// collect appends options to the first words of a command.
func collect[O any](write func(O, *command), options []O, args ...any) *command {
	c := &command{args: args, headers: map[string]string{}}
	for _, option := range options {
		write(option, c)
	}
	return c
}

func (c *command) add(words ...any) { c.args = append(c.args, words...) }

// option writes itself to a command. The return type of its function determines which commands accept it.
type option func(*command)

func (o option) forPush(c *command)       { o(c) }
func (o option) forSchedule(c *command)   { o(c) }
func (o option) forFollow(c *command)     { o(c) }
func (o option) forReschedule(c *command) { o(c) }
func (o option) forPromote(c *command)    { o(c) }
func (o option) forRedrive(c *command)    { o(c) }
func (o option) forPurge(c *command)      { o(c) }
func (o option) forPeek(c *command)       { o(c) }
func (o option) forSettings(c *command)   { o(c) }

// words is an option that consists of these words.
func words(words ...any) option { return func(c *command) { c.add(words...) } }

func anys(words []string) []any {
	all := make([]any, len(words))
	for i, word := range words {
		all[i] = word
	}
	return all
}

// idsOption means one thing to a push, and another to a redrive.
type idsOption []string

func (o idsOption) forPush(c *command)    { c.ids = append(c.ids, o...) }
func (o idsOption) forRedrive(c *command) { c.add("IDS", len(o)); c.add(anys(o)...) }

// Delay makes a message due this long after now, or after the end of the batch that it follows.
func Delay(d time.Duration) interface {
	PushOption
	FollowOption
	RescheduleOption
	RedriveOption
	Setting
} {
	return words("DELAY", ms(d))
}

// At makes a message due at a time. For a schedule it is the time of the first run.
func At(t time.Time) interface {
	PushOption
	ScheduleOption
	RescheduleOption
} {
	return words("AT", unixMs(t))
}

// Priority is from -128 to 127. Among ready messages, a higher one is delivered first.
func Priority(n int) interface {
	EachOption
	RescheduleOption
} {
	return words("PRIORITY", n)
}

// Retries is how often a message is delivered again after its first delivery, -1 without a limit.
func Retries(n int) interface {
	EachOption
	Setting
} {
	return words("RETRIES", n)
}

// TTL makes a message dead if it is not completed in time. 0 means never.
func TTL(d time.Duration) interface {
	PushOption
	ScheduleOption
	Setting
} {
	return words("TTL", ms(d))
}

// Group is the group of a message. Messages of a group are delivered in order.
func Group(name string) interface {
	EachOption
	PurgeOption
	PeekOption
} {
	return words("GROUP", name)
}

// Header adds a header to a message.
func Header(name, value string) EachOption {
	return option(func(c *command) { c.headers[name] = value })
}

// Lease is how long a delivery may take before another worker gets the message. Workers extend the leases of messages
// that they work on.
func Lease(d time.Duration) interface {
	EachOption
	QueueOption
	Setting
} {
	return struct {
		option
		setting
	}{words("LEASE", ms(d)), func(s *settings) { s.lease = d }}
}

// ID is the id of a message. A second message of that id is refused with [ErrDuplicate].
func ID(id string) interface {
	PushOption
	FollowOption
} {
	return option(func(c *command) { c.ids = append(c.ids, id) })
}

// IDs are the ids of the messages of [Queue.PushMany], one each, or of those that [Queue.Redrive] is to make live
// again.
func IDs(ids ...string) interface {
	PushOption
	RedriveOption
} {
	return idsOption(ids)
}

// Replace puts the message in the place of the one that has its id, in any state.
func Replace() PushOption { return words("REPLACE") }

// ReplaceLater is [Replace], but a message that is being worked on is replaced when its delivery ends.
func ReplaceLater() PushOption { return words("REPLACE", "LATER") }

// MaxWait bounds how long replacements can postpone a message. It belongs to [Replace].
func MaxWait(d time.Duration) PushOption { return words("MAXWAIT", ms(d)) }

// Retain keeps a message, with its result, for this time after its completion.
func Retain(d time.Duration) interface {
	PushOption
	Setting
} {
	return option(func(c *command) { c.retain = true; c.add("RETAIN", ms(d)) })
}

// Batch is the batch of which a message is a member until it ends.
func Batch(name string) PushOption { return words("BATCH", name) }

// Attempt is how often a message was delivered before its push: its next delivery is one more.
func Attempt(deliveries int) PushOption { return words("ATTEMPT", deliveries) }

// LastError is the error of the last delivery that a message had before its push.
func LastError(text string) PushOption { return words("ERROR", text) }

// LastCheckpoint is the checkpoint that a message had before its push.
func LastCheckpoint(checkpoint []byte) PushOption { return words("CHECKPOINT", checkpoint) }

// Dead makes a message dead at its push, for one of the reasons "rejected", "retries" and "expired".
func Dead(reason string) PushOption { return words("DEAD", "REASON", reason) }

// Every makes a run due at each multiple of this interval since the Unix epoch.
func Every(d time.Duration) ScheduleOption { return words("EVERY", ms(d)) }

// Offset moves all runs of [Every] by this time.
func Offset(d time.Duration) ScheduleOption { return words("OFFSET", ms(d)) }

// Cron makes a run due at the times of a cron expression, in a time zone such as "Europe/Berlin", or UTC if it is
// empty.
func Cron(expression, zone string) ScheduleOption {
	if zone == "" {
		return words("CRON", expression)
	}
	return words("CRON", expression, "TZ", zone)
}

// Until is the last time at which a run may be due, or a message that [Queue.Promote] is to make due now.
func Until(t time.Time) interface {
	ScheduleOption
	PromoteOption
} {
	return words("UNTIL", unixMs(t))
}

// Times ends the series after this many runs.
func Times(n int) ScheduleOption { return words("TIMES", n) }

// Count is the most messages that a command changes.
func Count(n int) interface {
	PromoteOption
	RedriveOption
	PurgeOption
} {
	return words("COUNT", n)
}

// States purges messages of these states only: "delayed", "ready", "inflight", "dead", "done".
func States(first string, more ...string) PurgeOption {
	return option(func(c *command) { c.args = append(append([]any{first}, anys(more)...), c.args...) }) // They come first.
}

// Recurring purges schedules, too.
func Recurring() PurgeOption { return words("RECURRING") }

// Older selects messages that have been in their state, or dead, for at least this time.
func Older(d time.Duration) interface {
	RedriveOption
	PurgeOption
} {
	return words("OLDER", ms(d))
}

// Reason selects messages that died for this reason: "retries", "rejected" or "expired".
func Reason(reason string) RedriveOption { return words("REASON", reason) }

// MaxLease is the longest time from the beginning of a delivery to the end of its lease. 0 means no limit.
func MaxLease(d time.Duration) Setting { return words("MAXLEASE", ms(d)) }

// Backoff is how long a message waits after a nack: base, which doubles with each attempt, at most max, shortened by a
// share of up to jitter percent.
func Backoff(base, max time.Duration, jitter int) Setting {
	return words("BACKOFF", ms(base), ms(max), "JITTER", jitter)
}

// MaxLen is the most messages that are not dead. 0 means no limit.
func MaxLen(n int) Setting { return words("MAXLEN", n) }

// MaxInflight is the most messages in flight. 0 means no limit.
func MaxInflight(n int) Setting { return words("MAXINFLIGHT", n) }

// Rate is the most deliveries in any span of this time. 0, 0 means no limit.
func Rate(n int, d time.Duration) Setting { return words("RATE", n, ms(d)) }

// GroupRate is [Rate] for each group by itself.
func GroupRate(n int, d time.Duration) Setting { return words("GROUPRATE", n, ms(d)) }

// DeadLen is the most dead messages that are kept, -1 for all.
func DeadLen(n int) Setting { return words("DEADLEN", n) }

// DeadTTL is how long dead messages are kept. 0 means for ever.
func DeadTTL(d time.Duration) Setting { return words("DEADTTL", ms(d)) }

// DoneLen is the most completed messages that are kept, see [Retain], -1 for all.
func DoneLen(n int) Setting { return words("DONELEN", n) }

// MaxPayload is the largest payload in bytes. 0 means no limit.
func MaxPayload(n int) Setting { return words("MAXPAYLOAD", n) }

// GroupInflight is the most messages of one group that are in flight or wait for a retry. 0 means no limit.
func GroupInflight(n int) Setting { return words("GROUPINFLIGHT", n) }

// KeepErrors is how many errors of past attempts are kept of a message. 0 keeps the last text only.
func KeepErrors(n int) Setting { return words("ERRORS", n) }

// GroupOrder is the order in which groups are served: "due" or "turn".
func GroupOrder(order string) Setting { return words("GROUPORDER", order) }

// Dedupe is how long an accepted [ID] is refused. 0 means while its message is there.
func Dedupe(d time.Duration) Setting { return words("DEDUPE", ms(d)) }

// Forward is where the server moves messages that are due: "STREAM", "orders", "TRIM", "1000" for example, or "NONE".
func Forward(to ...string) Setting { return words(append([]any{"FORWARD"}, anys(to)...)...) }

// DeadForward is where the server moves dead messages: "QUEUE", "mail-dead" for example, or "NONE".
func DeadForward(to ...string) Setting { return words(append([]any{"DEADFORWARD"}, anys(to)...)...) }
