package dq

import "time"

// Record is a message as [Queue.Get] shows it. Fields that a message does not have are zero.
type Record struct {
	ID string
	// State is "delayed", "ready", "inflight", "dead" or "done".
	State   string
	Payload []byte
	// Attempt is the number of deliveries so far, and Retries the most redeliveries, -1 without a limit.
	Attempt, Retries, Priority int
	// Deadline is the end of the lease, Died when it became dead, Done when it was completed, Until how long it is
	// kept.
	Created, Due, Deadline, Died, Done, Until time.Time
	Lease, TTL                                time.Duration
	Group, Consumer, Receipt                  string
	Headers                                   map[string]string
	// Error is the last error, and Reason why the message is dead: "rejected", "expired" or "retries".
	Error, Reason      string
	Checkpoint, Result []byte
	// Fields has all fields by the names of DQ.GET, as the client decoded them.
	Fields map[string]any
}

func newRecord(reply any) *Record {
	f := fieldsOf(reply)
	r := &Record{Fields: f}
	r.ID, r.State, r.Payload = text(f["id"]), text(f["state"]), raw(f["payload"])
	r.Attempt, r.Retries, r.Priority = int(integer(f["attempt"])), int(integer(f["retries"])), int(integer(f["priority"]))
	r.Created, r.Due, r.Deadline = instant(f["created"]), instant(f["due"]), instant(f["deadline"])
	r.Died, r.Done, r.Until = instant(f["died"]), instant(f["done"]), instant(f["until"])
	r.Lease, r.TTL = duration(f["lease"]), duration(f["ttl"])
	r.Group, r.Consumer, r.Receipt = text(f["group"]), text(f["consumer"]), text(f["receipt"])
	r.Headers, r.Error, r.Reason = texts(f["headers"]), text(f["error"]), text(f["reason"])
	r.Checkpoint, r.Result = raw(f["checkpoint"]), raw(f["result"])
	return r
}

// found reads the reply to a command that answers null if there is no such message, batch or queue.
func found[T any](read func(reply any) *T, reply any, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	if reply == nil {
		return nil, ErrNotFound
	}
	return read(reply), nil
}

// Info is what [Queue.Info] returns.
type Info struct {
	Delayed, Ready, Inflight, Dead, Done int64
	// Paused means that nothing is delivered, Closed that no messages are accepted.
	Paused, Closed bool
	// Lease and Delay are those of messages that are pushed without.
	Lease, Delay                                       time.Duration
	Pushed, Delivered, Acked, Nacked, Expired, Waiting int64
	// Fields has all fields by the names of DQ.INFO, as the client decoded them.
	Fields map[string]any
}

func newInfo(reply any) *Info {
	f := fieldsOf(reply)
	i := &Info{Fields: f}
	i.Delayed, i.Ready, i.Inflight = integer(f["delayed"]), integer(f["ready"]), integer(f["inflight"])
	i.Dead, i.Done, i.Waiting = integer(f["dead"]), integer(f["done"]), integer(f["waiting-clients"])
	i.Pushed, i.Delivered, i.Acked = integer(f["pushed"]), integer(f["delivered"]), integer(f["acked"])
	i.Nacked, i.Expired = integer(f["nacked"]), integer(f["lease-expired"])
	i.Paused, i.Closed = integer(f["paused"]) == 1, integer(f["closed"]) == 1
	i.Lease, i.Delay = duration(f["lease"]), duration(f["delay"])
	return i
}

// BatchInfo is what [Queue.BatchInfo] returns.
type BatchInfo struct {
	// Total is how many messages have been members, and Left how many of them have not ended.
	Total, Left int64
	// Acked, Dead and Cancelled say how the others have ended.
	Acked, Dead, Cancelled int64
	// Closed means that [Queue.Follow] has set the message that follows: Then is its payload, and ThenID its id, if one
	// was chosen.
	Closed  bool
	Then    []byte
	ThenID  string
	Created time.Time
}

func newBatchInfo(reply any) *BatchInfo {
	f := fieldsOf(reply)
	return &BatchInfo{
		Total: integer(f["total"]), Left: integer(f["left"]), Acked: integer(f["acked"]), Dead: integer(f["dead"]),
		Cancelled: integer(f["cancelled"]), Closed: integer(f["closed"]) == 1, Created: instant(f["created"]),
		Then: raw(f["then"]), ThenID: text(f["then-id"]),
	}
}
