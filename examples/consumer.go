// A consumer with go-redis (go get github.com/redis/go-redis/v9): go run consumer.go [port]
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const queue = "orders:close"

func closeOrder(order string) error {
	fmt.Println("closing", order)
	return nil
}

func main() {
	port := "6379"
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	ctx := context.Background()
	// Only the loop looks at it: the messages in hand are still finished.
	running, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	// ReadTimeout must be longer than BLOCK; its default of a few seconds is not.
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, ReadTimeout: 10 * time.Second})
	defer rdb.Close()

	err := rdb.Do(ctx, "DQ.PUSH", queue, "order 1001", "ID", "order-1001", "DELAY", 2000).Err()
	if err != nil && !errors.Is(err, redis.Nil) { // redis.Nil: a message of that ID is there already
		log.Fatal(err)
	}
	for running.Err() == nil {
		messages, err := rdb.Do(ctx, "DQ.POP", queue, "COUNT", 10, "BLOCK", 5000).Slice()
		if errors.Is(err, redis.Nil) { // nothing came in time
			continue
		} else if err != nil {
			log.Print(err)
			time.Sleep(time.Second)
			continue
		}
		for _, m := range messages {
			message := m.([]interface{}) // id, payload, attempt, receipt
			id, receipt := message[0], message[3]
			if err := closeOrder(message[1].(string)); err != nil {
				state, _ := rdb.Do(ctx, "DQ.NACK", queue, receipt, "ERROR", err.Error()).Text()
				log.Printf("%v failed at attempt %v: %v; now %s", id, message[2], err, state)
				continue
			}
			// 0: the lease had ended and another consumer has the message. Work that takes long calls DQ.EXTEND.
			if acked, err := rdb.Do(ctx, "DQ.ACK", queue, receipt).Int(); err != nil || acked == 0 {
				log.Printf("%v was not acked: %d, %v", id, acked, err)
			}
		}
	}
}
