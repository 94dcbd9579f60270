// Package cluster answers: how is this cluster reached?
//
// [Connect] is the only way to the API server. All requests share its rules: reads are retried while the API
// server restarts, no client-side rate limit delays requests, a request ends with its context even while a
// credential plugin hangs, responses are bounded by the memory that they occupy in all clusters of the process
// together, and the time is the server's, not this machine's.
package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/cluster/weight"
	"github.com/openshift/update-preflight/collector/gap"
)

// Cluster is the clients of one cluster. They may be used concurrently.
type Cluster struct {
	Kubernetes kubernetes.Interface
	OpenShift  configclient.Interface
	// Dynamic reads APIs without a typed client, such as MachineConfigPools.
	Dynamic dynamic.Interface
	// Metadata reads the metadata of objects, without their content.
	Metadata metadata.Interface

	config *rest.Config
	clock  *clock
	bounds *bounds
}

// Connect makes the clients of the cluster that config reaches; config is not
// changed. userAgent is sent with every request. No request is sent.
func Connect(config *rest.Config, userAgent string) (*Cluster, error) {
	return connect(config, userAgent, &clock{})
}

// ConnectAt is Connect for a server that has the state of a cluster at one time, such as an archive: Now is always
// that time.
func ConnectAt(config *rest.Config, userAgent string, at time.Time) (*Cluster, error) {
	return connect(config, userAgent, &clock{fixed: at})
}

func connect(config *rest.Config, userAgent string, by *clock) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	config.QPS = -1 // the API server's priority and fairness decides
	config.WarningHandlerWithContext = gap.Warnings{}
	bounds := &bounds{}
	if by.fixed.IsZero() { // an archive bounds its files
		config.Wrap(bounds.wrap)
	}
	config.Wrap(retry.Reads)
	c := &Cluster{config: rest.CopyConfig(config), clock: by, bounds: bounds}
	config.Wrap(c.clock.wrap)
	client, err := interruptible(config)
	if err != nil {
		return nil, fmt.Errorf("the configuration of the cluster cannot be used: %w", err)
	}
	var errs [4]error
	c.Kubernetes, errs[0] = kubernetes.NewForConfigAndClient(config, client)
	c.OpenShift, errs[1] = configclient.NewForConfigAndClient(config, client)
	c.Dynamic, errs[2] = dynamic.NewForConfigAndClient(config, client)
	c.Metadata, errs[3] = metadata.NewForConfigAndClient(config, client)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("the configuration of the cluster cannot be used: %w", err)
	}
	return c, nil
}

// Config is a copy of the configuration, for other servers of the cluster that accept the user's credentials.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Now is the time by the API server's clock, with an error of up to two seconds.
// Before the first response it is this machine's.
func (c *Cluster) Now() time.Time { return c.clock.now().UTC() }

// Fixed reports whether the state belongs to one time (an archive), so that waiting cannot change it.
func (c *Cluster) Fixed() bool { return !c.clock.fixed.IsZero() }

const (
	// maxResponse bounds the body of a response, in bytes after decompression: client-go reads all of it into
	// memory before it decodes it. Each of a page of 500 objects may have 131 kB.
	maxResponse = 64 << 20
	// maxMade bounds what is made of a response, in bytes of memory. Of a page of 500 pods each may have 20
	// containers with 20 variables and volumes.
	maxMade = 512 << 20
	// maxEvent bounds an event of a watch, in bytes: etcd has no object of two megabytes.
	maxEvent = 8 << 20
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
	// Sent describes the server's response, as a noun phrase.
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
	// waited is true where a response has waited for room.
	waited atomic.Bool
}

func (b *bounds) exceed(host, sent string) error {
	return b.fail(&TooMuchError{Host: host, Sent: sent})
}

func (b *bounds) fail(err error) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.exceeded == nil {
		b.exceeded = err
	}
	return err
}

// Exceeded returns the first TooMuchError or NoRoomError of the cluster's clients; nil for none. Conclusions from
// the other responses of such a server may be wrong.
func (c *Cluster) Exceeded() error {
	if c.bounds == nil {
		return nil
	}
	c.bounds.mutex.Lock()
	defer c.bounds.mutex.Unlock()
	return c.bounds.exceeded
}

// Waited reports whether a response has waited for memory that other clusters used.
func (c *Cluster) Waited() bool { return c.bounds != nil && c.bounds.waited.Load() }

// wrap makes a transport whose responses are bounded. Logs that are followed are not: their readers take them
// piece by piece.
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
	if err != nil {
		return response, err
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	query, protobuf := request.URL.Query(), strings.Contains(kind, "protobuf")
	succeeded := response.StatusCode == http.StatusOK // client-go reads all of any other response
	switch {
	case response.StatusCode == http.StatusSwitchingProtocols && request.Header.Get("Upgrade") == "":
		return nil, errors.Join(t.of.exceed(request.URL.Host, "101 Switching Protocols, which was not requested"), response.Body.Close())
	case response.StatusCode == http.StatusSwitchingProtocols, succeeded && query.Get("follow") != "":
		return response, nil
	case strings.Contains(kind, "yaml"), strings.Contains(kind, "cbor"):
		return nil, errors.Join(t.of.exceed(request.URL.Host, "a response of the type "+kind+", which was not requested"), response.Body.Close())
	}
	body := &boundedBody{ReadCloser: response.Body, request: request, of: t.of}
	body.claim = shared().claim(request.Context(), request.URL.Host+request.URL.Path, query.Get("continue") != "")
	response.Body = body
	switch {
	case succeeded && query.Get("watch") != "":
		body.stream = true
		if protobuf {
			response.Body = &eventBody{boundedBody: body}
			return response, nil
		}
	case strings.HasSuffix(request.URL.Path, "/log"):
		return response, nil
	default:
		return body.readObject(response) //nolint:contextcheck // the body is read with the context of its request
	}
	body.json = &weight.JSON{}
	return response, nil
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

	of      *bounds
	request *http.Request
	claim   *claim
	read    int64
	// json weighs a text in JSON; nil where only the bytes count.
	json *weight.JSON
	// stream is true for events, of which each is decoded before the next one is read.
	stream bool
	// heaviest is the weight of the response, or of the heaviest event of the last read.
	heaviest int64
	// err is returned by each further read.
	err error
}

// readObject reads the body of a response if it is an object in protobuf, whatever its type is said to be: a message
// cannot be weighed in parts.
func (b *boundedBody) readObject(response *http.Response) (*http.Response, error) {
	begin := make([]byte, len(weight.Prefix))
	count, err := io.ReadFull(b, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.Join(err, b.Close())
	}
	rest := b.ReadCloser
	response.Body, b.ReadCloser, b.read = b, prepended{io.MultiReader(bytes.NewReader(begin[:count]), rest), rest}, 0
	if string(begin) != weight.Prefix {
		b.json = &weight.JSON{}
		return response, nil
	}
	text, err := retry.Ahead(response, maxResponse+1) // of which more than maxResponse are an error
	if err == nil {
		err = b.hold(weight.Protobuf(text))
	}
	if err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	return response, nil
}

type prepended struct {
	io.Reader
	io.Closer
}

// hold takes room for the response.
func (b *boundedBody) hold(weight int64) error {
	host := b.request.URL.Host
	if most := min(maxMade, shared().size); weight > most {
		return b.of.exceed(host, fmt.Sprintf("a response that would expand to more than %d MiB", most>>20))
	}
	found := shared().set(b.request.Context(), b.claim, weight)
	if b.claim.waited {
		b.of.waited.Store(true)
	}
	if !found {
		return b.of.fail(&NoRoomError{Host: host})
	}
	return nil
}

func (b *boundedBody) Read(into []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	count, err := b.ReadCloser.Read(into)
	b.read += int64(count)
	if b.json != nil {
		b.heaviest = max(b.heaviest, b.json.Add(into[:count]))
	}
	if !b.stream {
		b.heaviest = max(b.heaviest, b.read*weight.PerByte)
	}
	if failed := b.check(count, errors.Is(err, io.EOF)); failed != nil {
		b.err = failed
		return 0, b.err
	}
	return count, err
}

// check is an error where what was read is too much. Until all is read, the response occupies what it was read into.
func (b *boundedBody) check(count int, all bool) error {
	host := b.request.URL.Host
	switch {
	case b.stream:
		defer func() { b.heaviest = 0 }()
		return b.hold(b.heaviest)
	case b.read > maxResponse:
		return b.of.exceed(host, fmt.Sprintf("more than %d MiB in one response", maxResponse>>20))
	case !b.of.take(count):
		return b.of.exceed(host, fmt.Sprintf("more than %d MiB in %s", maxRead>>20, maxReadTime))
	case all, b.heaviest > maxMade:
		return b.hold(b.heaviest)
	case 2*b.read > b.claim.weight:
		return b.hold(2*b.read + b.read/4) // not for each read
	}
	return nil
}

func (b *boundedBody) Close() error {
	shared().end(b.claim)
	return b.ReadCloser.Close()
}

// eventBody is the body of a watch in protobuf, whose events have their size before them.
type eventBody struct {
	*boundedBody

	unread []byte
}

func (e *eventBody) Read(into []byte) (int, error) {
	if len(e.unread) == 0 && e.err == nil {
		e.err = e.next()
	}
	if e.err != nil {
		return 0, e.err
	}
	count := copy(into, e.unread)
	e.unread = e.unread[count:]
	return count, nil
}

// next reads an event.
func (e *eventBody) next() error {
	var size [4]byte
	if _, err := io.ReadFull(e.ReadCloser, size[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(size[:])
	if length > maxEvent {
		return e.of.exceed(e.request.URL.Host, fmt.Sprintf("an event of more than %d MiB", maxEvent>>20))
	}
	if err := e.hold(int64(length) * weight.PerByte); err != nil {
		return err
	}
	e.unread = append(size[:], make([]byte, length)...)
	if _, err := io.ReadFull(e.ReadCloser, e.unread[len(size):]); err != nil {
		return err
	}
	if event := e.unread[len(size):]; bytes.HasPrefix(event, []byte(weight.Prefix)) {
		return e.hold(weight.Protobuf(event))
	}
	return nil
}

// clock follows the clock of the API server by the Date header of its responses:
// the validity of a verdict must not depend on the clock of a laptop.
type clock struct {
	// fixed is the time of a state that does not change; the zero value is none.
	fixed time.Time

	mutex sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	if !c.fixed.IsZero() {
		return c.fixed
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return time.Now().Add(c.ahead)
}

// wrap makes a transport whose responses set the clock.
func (c *clock) wrap(next http.RoundTripper) http.RoundTripper {
	return timedTransport{clock: c, next: next}
}

type timedTransport struct {
	clock *clock
	next  http.RoundTripper
}

func (t timedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.set(time.Until(date))
	}
	return response, nil
}

// precision is the difference up to which two clocks count as equal: a Date has
// whole seconds, and the response takes time to arrive.
const precision = 2 * time.Second

func (c *clock) set(ahead time.Duration) {
	if ahead.Abs() < precision {
		ahead = 0
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.ahead = ahead
}

// LastWrite returns when an object was last written, by the clock of the API server, to the second.
func LastWrite(object metav1.Object) time.Time {
	last := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}
