package dq

import (
	"fmt"
	"strings"
	"time"
)

// refusedPause is how long it takes until a channel that the user has no right to is tried again.
const refusedPause = 30 * time.Second

// listen receives a notice when a command takes a message away: the server publishes it on a channel of each queue.
// Notices are hints. If the connection breaks, or the user has no right to the channel, losses are noticed when leases
// are extended.
func (l *lane) listen() {
	dialer, ok := l.worker.do.(Dialer)
	if !ok {
		l.listening()
		return
	}
	channel := fmt.Sprintf("__dq@%d__:%s", dialer.DB(), l.key)
	var pauses backoff
	refused := false
	for l.worker.work.Err() == nil {
		subscription, err := dialer.Subscribe(l.worker.work, channel)
		if err = translate(err); err != nil && !isTransient(err) {
			if !refused {
				refused = true
				l.worker.emit(Event{Kind: Refused, Queue: l.queue,
					Err: fmt.Errorf("losses are noticed late, without the channel %s: %w", channel, err)})
			}
			l.listening()
			waitFor(l.worker.work.Done(), refusedPause)
			continue
		}
		if err == nil {
			refused = false
			pauses = backoff{}
			l.extendAll("lease") // Something may have been missed.
			l.listening()
			for err == nil {
				var notice string
				if notice, err = subscription.Receive(); err == nil {
					l.notice(notice)
				}
			}
			subscription.Close()
		}
		waitFor(l.worker.work.Done(), pauses.next())
	}
}

// listening is called when notices of losses come, or cannot come.
func (l *lane) listening() {
	l.heard.Store(true)
	l.worker.consuming()
}

// notice reads "cancelled <receipt>"; a reason alone stands for many messages.
func (l *lane) notice(notice string) {
	if reason, receipt, one := strings.Cut(notice, " "); one {
		l.hear(reason, receipt)
	} else if reason != "" {
		l.extendAll(reason)
	}
}
