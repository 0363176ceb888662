// Package escaped reads and writes JSON in which bytes that are not UTF-8 are surrogate escapes, \udc80 to \udcff, as
// Python writes them. encoding/json replaces both.
package escaped

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// While JSON is read, a byte that is not UTF-8 is one of the last characters of the last plane, which have no other
// use.
const stand = 0x10FF00

// An escape, or two that make one character.
var escape = regexp.MustCompile(`(?i)\\(u(d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|[0-9a-f]{4})|.)`)

// Unmarshal is json.Unmarshal. Strings of the value are to be passed to Bytes.
func Unmarshal(data []byte, value any) error {
	data = escape.ReplaceAllFunc(data, func(word []byte) []byte {
		code, err := strconv.ParseUint(strings.TrimPrefix(string(word), `\u`), 16, 16)
		if err != nil || code < 0xDC80 || code > 0xDCFF {
			return word
		}
		return []byte(string(rune(stand + code - 0xDC00)))
	})
	return json.Unmarshal(data, value)
}

// Bytes returns the bytes of a string that was read.
func Bytes(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= stand+0x80 && r <= stand+0xFF {
			b.WriteByte(byte(r - stand))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Marshal returns a map as JSON. Its values are what json.Marshal knows; bytes that are not UTF-8 are kept in strings
// and in maps of strings.
func Marshal(fields map[string]any) []byte {
	words := make([]string, 0, len(fields))
	for name, value := range fields {
		switch v := value.(type) {
		case string:
			words = append(words, quote(name)+":"+quote(v))
		case map[string]string:
			inner := make([]string, 0, len(v))
			for name, value := range v {
				inner = append(inner, quote(name)+":"+quote(value))
			}
			words = append(words, quote(name)+":{"+strings.Join(inner, ",")+"}")
		default:
			plain, _ := json.Marshal(v)
			words = append(words, quote(name)+":"+string(plain))
		}
	}
	return []byte("{" + strings.Join(words, ",") + "}")
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\udc%02x`, s[0])
		} else {
			plain, _ := json.Marshal(s[:size])
			b.Write(plain[1 : len(plain)-1])
		}
		s = s[size:]
	}
	b.WriteByte('"')
	return b.String()
}
