// Package gap answers: which state of the cluster was never gathered, so that it cannot be read?
//
// [Track] returns a context that records the gaps in everything that is read with it. A server that has only a
// part of a cluster's state, such as an archive, reports a gap by [Gap.Header], and [Warnings] records it for the
// reader. With a gap, an empty result does not prove that no object exists: [ExtentOf] reports what was read with
// a context, and whether it is complete.
package gap

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
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
	// Namespace and Name are empty if the objects of all namespaces, or all objects, were requested.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Partial is true where some of the objects were gathered.
	Partial bool `json:"partial,omitempty"`
	// Inferred is true if only the program that wrote an archive indicates that nothing is missing: then there is no
	// gap, and counts cover the objects in the archive.
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

// Header returns the value of the header Warning that reports the gap.
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

// Warnings records the gaps that responses report, including inferred completeness, and ignores other warnings.
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

// maxRecorded bounds the gaps of one reader, and the failures.
const maxRecorded = 100

// Extent is how much of the state on which a conclusion depends was read. The zero value contains nothing, and is
// incomplete: a passing finding takes an Extent, so that no check passes because of unread objects.
type Extent struct {
	proofs, failures []string
	gaps             []Gap
	inferred         bool
}

// Inferred is true if the completeness is inferred (Gap.Inferred).
func (e Extent) Inferred() bool { return e.inferred }

// Proven is the extent of a conclusion that depends on no list of objects, or whose list is proven otherwise. by
// names the proof, as a noun phrase, such as "the exit code of the check".
func Proven(by string) Extent { return Extent{proofs: []string{by}} }

// Complete is true where something was read, nothing was missing and no reading failed.
func (e Extent) Complete() bool {
	return len(e.proofs) > 0 && len(e.failures) == 0 && len(e.gaps) == 0
}

// Gaps are the gaps, each once, in the order in which they were noted.
func (e Extent) Gaps() []Gap { return slices.Clone(e.gaps) }

// Missing lists what was not read, as clauses; empty if the extent is complete.
func (e Extent) Missing() []string {
	var missing []string
	for _, each := range e.gaps {
		missing = append(missing, "the archive has "+each.String())
	}
	missing = append(missing, e.failures...)
	if len(missing) == 0 && len(e.proofs) == 0 {
		return []string{"nothing was read"}
	}
	return missing
}

// And is the extent of a conclusion that depends on both.
func (e Extent) And(other Extent) Extent {
	joined := Extent{proofs: slices.Clone(e.proofs), failures: slices.Clone(e.failures), gaps: slices.Clone(e.gaps), inferred: e.inferred ||
		other.inferred}
	record(&joined.proofs, other.proofs)
	record(&joined.failures, other.failures)
	record(&joined.gaps, other.gaps)
	return joined
}

// record adds what is not yet known. Beyond the limit, the extent does not change.
func record[T comparable](known *[]T, more []T) {
	for _, each := range more {
		if len(*known) < maxRecorded && !slices.Contains(*known, each) {
			*known = append(*known, each)
		}
	}
}

// Log has the extent of one reader.
type Log struct {
	mutex sync.Mutex
	read  Extent
	// outer has it too; nil for none.
	outer *Log
}

// Err is the error of a reader that needs all objects, by which Is is true; nil without a gap.
func (l *Log) Err() error {
	gaps := l.All()
	if len(gaps) == 0 {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: Reason, Message: "the archive has " + gaps[0].String(),
	}}
}

// Lacks reports whether objects of a resource, by its plural, are among the gaps.
func (l *Log) Lacks(resource string) bool {
	return slices.ContainsFunc(l.All(), func(each Gap) bool { return each.Resource == resource })
}

// All are the gaps, each once, in the order in which they were noted.
func (l *Log) All() []Gap { return l.Extent().Gaps() }

// Extent returns the extent of everything read so far.
func (l *Log) Extent() Extent {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return Extent{}.And(l.read)
}

type key struct{}

// Track makes a context whose readings are recorded, and not in the log of ctx.
func Track(ctx context.Context) (context.Context, *Log) {
	log := &Log{}
	return context.WithValue(ctx, key{}, log), log
}

// Watch makes a context whose readings are recorded here, and in the log of ctx as well.
func Watch(ctx context.Context) (context.Context, *Log) {
	log := &Log{}
	log.outer, _ = ctx.Value(key{}).(*Log)
	return context.WithValue(ctx, key{}, log), log
}

// ExtentOf returns the extent of everything read with a context of Track or Watch; for another context it is the
// zero value.
func ExtentOf(ctx context.Context) Extent {
	if log, ok := ctx.Value(key{}).(*Log); ok {
		return log.Extent()
	}
	return Extent{}
}

// Add records an extent in the log of the context, if it has one.
func Add(ctx context.Context, read Extent) {
	log, _ := ctx.Value(key{}).(*Log)
	for ; log != nil; log = log.outer {
		log.add(read)
	}
}

func (l *Log) add(read Extent) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.read = l.read.And(read)
}

// Note records gaps.
func Note(ctx context.Context, gaps ...Gap) { Add(ctx, Extent{gaps: gaps}) }

// Prove records that something was read completely; by names the proof, as in Proven.
func Prove(ctx context.Context, by string) { Add(ctx, Proven(by)) }

// Fail records that something could not be read.
func Fail(ctx context.Context, err error) { Add(ctx, Extent{failures: []string{err.Error()}}) }
