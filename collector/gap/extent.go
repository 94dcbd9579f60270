package gap

import (
	"context"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxRecorded bounds the gaps of one reader, and the failures.
const maxRecorded = 100

// Extent is how much of the state on which a conclusion depends was read. The zero value has
// nothing, and is not complete: a passing finding takes an Extent, so that no check passes by
// what it did not read.
type Extent struct {
	proofs, failures []string
	gaps             []Gap
	inferred         bool
}

// Inferred is true where the completeness of what was read is inferred (Gap.Inferred).
func (e Extent) Inferred() bool { return e.inferred }

// Proven is the extent of a conclusion that depends on no list of objects, or whose list is
// proven otherwise. by is what proves it, as a noun phrase, such as "the exit code of the check".
func Proven(by string) Extent { return Extent{proofs: []string{by}} }

// Complete is true where something was read, nothing was missing and no reading failed.
func (e Extent) Complete() bool {
	return len(e.proofs) > 0 && len(e.failures) == 0 && len(e.gaps) == 0
}

// Gaps are the gaps, each once, in the order in which they were noted.
func (e Extent) Gaps() []Gap { return slices.Clone(e.gaps) }

// Missing is what was not read, as clauses; empty where the extent is complete.
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
	joined := Extent{proofs: slices.Clone(e.proofs), failures: slices.Clone(e.failures), gaps: slices.Clone(e.gaps), inferred: e.inferred || other.inferred}
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

// Extent is what was read until now.
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

// ExtentOf is what was read with a context of Track or Watch; of another context it is the zero value.
func ExtentOf(ctx context.Context) Extent {
	if log, ok := ctx.Value(key{}).(*Log); ok {
		return log.Extent()
	}
	return Extent{}
}

// Add records what was read in the log of the context, if it has one.
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

// Prove records that something was read entirely; by is what proves it, as for Proven.
func Prove(ctx context.Context, by string) { Add(ctx, Proven(by)) }

// Fail records that something could not be read.
func Fail(ctx context.Context, err error) { Add(ctx, Extent{failures: []string{err.Error()}}) }
