package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/openshift/update-preflight/collector/cluster/retry"
)

const (
	// maxResponse bounds the body of a response, in bytes after decompression: client-go reads all of it into
	// memory before it decodes it. Each of a page of 500 objects may have 131 kB.
	maxResponse = 64 << 20
	// maxElements bounds the objects and the elements of arrays in a response: each may become a struct of a
	// kilobyte. Each of a page of 500 objects may have 2 000.
	maxElements = 1_000_000
	// maxFields bounds the fields of the messages in a response that have a text or a message, for protobuf,
	// which the typed clients prefer. Each of a page of 500 objects may have 4 000.
	maxFields = 2_000_000
	// maxNested bounds the depth of objects and arrays.
	maxNested = 1000
	// maxRead bounds what is read of one cluster in maxReadTime: 150 000 pods, for which Kubernetes is tested, of
	// 10 kB each are less.
	maxRead     = 2 << 30
	maxReadTime = 5 * time.Minute
)

// TooMuchError is the error of a request where an API server sends more than is read, as one that is hostile
// may do to end this process.
type TooMuchError struct {
	// Host is the address of the API server.
	Host string
	// Sent is a noun phrase for what the server has sent.
	Sent string
}

func (e *TooMuchError) Error() string {
	return fmt.Sprintf("the API server %s has sent %s, so its response is not read", e.Host, e.Sent)
}

// bounds counts what is read of one cluster, for all its clients.
type bounds struct {
	mutex sync.Mutex
	start time.Time
	read  int64
	// exceeded is the first error; nil for none.
	exceeded error
}

func (b *bounds) exceed(host, sent string) error {
	err := &TooMuchError{Host: host, Sent: sent}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.exceeded == nil {
		b.exceeded = err
	}
	return err
}

// Exceeded is the first TooMuchError of the cluster's clients; nil for none. What was concluded from the rest of
// such a server's responses is not known to be about a cluster.
func (c *Cluster) Exceeded() error {
	if c.bounds == nil {
		return nil
	}
	c.bounds.mutex.Lock()
	defer c.bounds.mutex.Unlock()
	return c.bounds.exceeded
}

// wrap makes a transport whose responses are bounded. Watches and logs that are followed are not: their
// readers take them piece by piece, each of which is bounded (client-go: 16 MiB for an event).
func (b *bounds) wrap(next http.RoundTripper) http.RoundTripper { return &boundedTransport{next, b} }

type boundedTransport struct {
	next http.RoundTripper
	of   *bounds
}

// WrappedRoundTripper implements the interface of k8s.io/apimachinery/pkg/util/net, by which
// client-go finds the transport that has the connections.
func (t *boundedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols || isStream(request) {
		return response, err
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	body := &boundedBody{ReadCloser: response.Body, of: t.of, host: request.URL.Host, elements: &elements{}}
	response.Body = body
	switch {
	case strings.Contains(kind, "protobuf"):
		body.elements = nil
		return t.readProtobuf(response, request.URL.Host)
	case strings.Contains(kind, "yaml"), strings.Contains(kind, "cbor"):
		_ = response.Body.Close() // it is not read
		return nil, t.of.exceed(request.URL.Host, "a response of the type "+kind+", which was not requested")
	}
	return response, nil
}

// readProtobuf reads the body, whose messages cannot be counted in parts.
func (t *boundedTransport) readProtobuf(response *http.Response, host string) (*http.Response, error) {
	text, err := retry.Ahead(response, maxResponse+1) // of which more than maxResponse are an error
	if err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	message, _ := bytes.CutPrefix(text, []byte("k8s\x00")) // how Kubernetes begins an object
	if fields, _ := fieldsOf(message, 0); fields > maxFields {
		_ = response.Body.Close() // it is not read
		return nil, t.of.exceed(host, fmt.Sprintf("a response with more than %d fields, or %d levels", maxFields, maxNested))
	}
	return response, nil
}

// fieldsOf counts the fields of a message that have a text or a message, with those of its messages, and reports
// whether it is one. Without its schema a text may look like a message, so there are at most as many. More than
// maxFields are not counted, and a message at more than maxNested levels has too many.
func fieldsOf(message []byte, level int) (count int, valid bool) {
	for len(message) > 0 && count <= maxFields {
		var value []byte
		if value, message, valid = cutField(message); !valid {
			return 0, false
		}
		if value == nil {
			continue
		}
		if len(value) > 0 && level == maxNested {
			return maxFields + 1, true
		}
		count++
		if within, ok := fieldsOf(value, level+1); ok {
			count += within
		}
	}
	return count, true
}

// cutField cuts the first field off a message: its value is nil for a number. It is false where the message is none.
func cutField(message []byte) (value, rest []byte, valid bool) {
	_, kind, size := protowire.ConsumeTag(message)
	if size < 0 {
		return nil, nil, false
	}
	message = message[size:]
	if kind == protowire.BytesType {
		value, size = protowire.ConsumeBytes(message)
	} else {
		size = protowire.ConsumeFieldValue(1, kind, message)
	}
	if size < 0 {
		return nil, nil, false
	}
	return value, message[size:], true
}

func isStream(request *http.Request) bool {
	query := request.URL.Query()
	return query.Get("watch") != "" || query.Get("follow") != ""
}

// take counts bytes that were read, and returns false where they are too many.
func (b *bounds) take(count int) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if now := time.Now(); now.Sub(b.start) > maxReadTime {
		b.start, b.read = now, 0
	}
	b.read += int64(count)
	return b.read <= maxRead
}

type boundedBody struct {
	io.ReadCloser

	of   *bounds
	host string
	read int64
	// elements counts those of JSON; nil for another encoding.
	elements *elements
	// err is returned by each further read.
	err error
}

func (b *boundedBody) Read(into []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	count, err := b.ReadCloser.Read(into)
	b.read += int64(count)
	var sent string
	switch {
	case b.read > maxResponse:
		sent = fmt.Sprintf("more than %d MiB in one response", maxResponse>>20)
	case b.elements != nil && !b.elements.count(into[:count]):
		sent = fmt.Sprintf("a response with more than %d objects and elements, or %d levels", maxElements, maxNested)
	case !b.of.take(count):
		sent = fmt.Sprintf("more than %d MiB in %s", maxRead>>20, maxReadTime)
	default:
		return count, err
	}
	b.err = b.of.exceed(b.host, sent)
	return 0, b.err
}

// elements counts the objects and the elements of arrays in a JSON text.
type elements struct {
	found    int
	arrays   []bool // true for an array, the innermost last
	inString bool
	escaped  bool
}

// count reads the next part of the text, and returns false where it has too many.
func (e *elements) count(text []byte) bool {
	for len(text) > 0 {
		if e.inString {
			text = e.skipString(text)
			continue
		}
		text = e.skipToString(text)
	}
	return e.found <= maxElements && len(e.arrays) <= maxNested
}

// skipToString counts what is before the next string, and returns what follows its quote.
func (e *elements) skipToString(text []byte) []byte {
	for at, character := range text {
		switch character {
		case '"':
			e.inString = true
			return text[at+1:]
		case '{', '[':
			e.found++
			if len(e.arrays) <= maxNested {
				e.arrays = append(e.arrays, character == '[')
			}
		case '}', ']':
			e.arrays = e.arrays[:max(0, len(e.arrays)-1)]
		case ',':
			if last := len(e.arrays) - 1; last >= 0 && e.arrays[last] {
				e.found++
			}
		}
	}
	return nil
}

// skipString returns what follows the string, or nothing within it.
func (e *elements) skipString(text []byte) []byte {
	for at, character := range text {
		switch {
		case e.escaped:
			e.escaped = false
		case character == '\\':
			e.escaped = true
		case character == '"':
			e.inString = false
			return text[at+1:]
		}
	}
	return nil
}
