// Package gap answers: which state of the cluster was never gathered, so that it cannot be read?
//
// [Track] makes a context which records the gaps of what is read with it. A server that has only
// a part of a cluster's state, such as an archive, states a gap by [Gap.Header], and [Warnings]
// records it for the reader. A reader that finds nothing beside a gap has not found that there is
// nothing: [ExtentOf] is what was read with a context, and whether it is complete.
package gap

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Reason is the reason of a status for a request whose objects were not gathered. Its code must
// be none by which client-go recognizes NotFound or Forbidden.
const Reason metav1.StatusReason = "NotInArchive"

const (
	// agent is the agent of the warning that states a gap (RFC 7234, 5.5).
	agent = "preflight-archive"
	// miscellaneous is the code of a warning that persists.
	miscellaneous = 299
)

// Gap is state that was not gathered.
type Gap struct {
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// Namespace and Name are empty where the objects of all namespaces, or all objects, were asked for.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Partial is true where some of the objects were gathered.
	Partial bool `json:"partial,omitempty"`
	// Inferred is true where nothing is known to be missing, by what is known of the program that wrote an archive alone:
	// then it is no gap, and what is counted is what the archive has.
	Inferred bool `json:"inferred,omitempty"`
	// Cause is why they are missing, as a clause, such as a file that cannot be read; may be empty.
	Cause string `json:"cause,omitempty"`
}

// String completes "the archive has": "no pods of namespace x", "only some of all pods".
func (g Gap) String() string {
	what := g.Qualified()
	switch {
	case g.Name == "" && g.Namespace == "" && g.Partial:
		what = "all " + what
	case g.Name != "" && g.Namespace != "":
		what += " " + g.Namespace + "/" + g.Name
	case g.Name != "":
		what += " " + g.Name
	case g.Namespace != "":
		what += " of namespace " + g.Namespace
	}
	text := "no " + what
	if g.Partial {
		text = "only some of " + what
	}
	if g.Cause != "" {
		text += " (" + g.Cause + ")"
	}
	return text
}

// Qualified is the resource as in a command line: "poddisruptionbudgets.policy".
func (g Gap) Qualified() string {
	if g.Group == "" {
		return g.Resource
	}
	return g.Resource + "." + g.Group
}

// Header is the value of the header Warning which states the gap.
func (g Gap) Header() (string, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, string(text))
	return utilnet.NewWarningHeader(miscellaneous, agent, printable)
}

// Is reports whether a request failed because its objects were not gathered.
func Is(err error) bool {
	return err != nil && apierrors.ReasonForError(err) == Reason
}

// Warnings records the gaps that responses state, and which are inferred, and ignores other warnings.
type Warnings struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (Warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, by, text string) {
	var stated Gap
	if code != miscellaneous || by != agent || json.Unmarshal([]byte(text), &stated) != nil {
		return
	}
	if stated.Inferred {
		Add(ctx, Extent{inferred: true})
		return
	}
	Note(ctx, stated)
}

// Once is the result of reading one thing once, for several readers. The zero value is
// ready to use, by several goroutines at a time.
type Once[T any] struct {
	mutex sync.Mutex
	known bool
	value T
	err   error
	read  Extent
}

// Get returns the result of the first call of read. An error is a result too, unless the
// context of its reader has ended: then the next reader reads. The extent of the first reading
// is recorded for each reader.
func (o *Once[T]) Get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.known {
		Add(ctx, o.read)
		return o.value, o.err
	}
	tracked, log := Track(ctx)
	value, err := read(tracked)
	Add(ctx, log.Extent())
	if err != nil && ctx.Err() != nil {
		return value, err
	}
	o.known, o.value, o.err, o.read = true, value, err, log.Extent()
	return o.value, o.err
}
