package goredis

import (
	"context"
	"net"
	"strings"

	"dq"
)

// A command is sent to another node this often. Nodes can disagree for a moment.
const mostHops = 5

// Do sends a command to the node that holds its key, which is its first argument, and follows MOVED and ASK. The client
// of the cluster would send a command again whose reply was lost, so that null might be the answer to one's own push.
func (c *Cluster) Do(ctx context.Context, args ...any) (any, error) {
	node, err := c.holder(ctx, keyOf(args))
	if err != nil {
		return nil, dq.NotSent(err)
	}
	reply, err := node.Do(ctx, args...)
	for hops := 0; err != nil && hops < mostHops; hops++ {
		kind, address := redirection(err, node.options.Addr)
		if kind != "" || !isAnswer(err) {
			c.rdb.ReloadState(ctx)
		}
		switch kind {
		case "MOVED":
			node = c.at(address, node.options)
			reply, err = node.Do(ctx, args...)
		case "ASK":
			reply, err = ask(ctx, c.at(address, node.options), args)
		default:
			return nil, err
		}
	}
	return reply, err
}

// keyOf returns the key of a command.
func keyOf(args []any) string {
	if len(args) < 2 {
		return ""
	}
	if key, ok := args[1].([]byte); ok {
		return string(key)
	}
	key, _ := args[1].(string)
	return key
}

// redirection returns the kind of a redirection, and its address, if a node has answered with one. A node that does not
// know its own host leaves it out.
func redirection(err error, asked string) (kind, address string) {
	if !isAnswer(err) {
		return "", ""
	}
	words := strings.Fields(err.Error())
	if len(words) != 3 || (words[0] != "MOVED" && words[0] != "ASK") {
		return "", ""
	}
	if strings.HasPrefix(words[2], ":") {
		host, _, _ := net.SplitHostPort(asked)
		return words[0], net.JoinHostPort(host, words[2][1:])
	}
	return words[0], words[2]
}

// ask sends a command to the node to which a slot is moving.
func ask(ctx context.Context, node *Client, args []any) (any, error) {
	opened, err := node.Dial(ctx)
	if err != nil {
		return nil, dq.NotSent(err)
	}
	defer opened.Close()
	replies, err := opened.(dq.Pipeliner).Pipeline(ctx, [][]any{{"ASKING"}, args})
	if err != nil {
		return nil, err
	}
	if refused, ok := replies[1].(error); ok {
		return nil, refused
	}
	return replies[1], nil
}
