// Package baselinestore answers: which baseline was taken before an update of this cluster?
//
// [Store.Put] stores the state of the cluster beside the record of a run, and [Store.Before] uses [Choose] to find the
// newest baseline from before an update. [Store.PutJudgement] stores the judgement about the update beside the same
// record. Stored data is deleted with the record, and counts only if its MAC matches; package recordformat documents
// the format.
package baselinestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

const (
	format = 1
	// maxPart bounds the data of one part, in bytes: the API server accepts 1 MiB.
	maxPart  = 512 << 10
	maxParts = baseline.MaxPacked / maxPart
)

// Store reads and writes the objects beside the records of one cluster. All requests are retried, until their context
// is done, while the API server is unreachable or overloaded.
type Store struct{ records *recordstore.Store }

// New returns a Store.
func New(client kubernetes.Interface) *Store { return &Store{recordstore.New(client)} }

// Names is how a baseline names the objects of users.
type Names string

// The values of Names.
const (
	// Plain is by their names.
	Plain Names = "plain"
	// Digests is by digests of the names that need the key of the records.
	Digests Names = "digests"
	// None is by no baseline.
	None Names = "none"
)

// Known reports whether it is one of the constants.
func (n Names) Known() bool { return n == Plain || n == Digests || n == None }

// Baseline is a stored baseline.
type Baseline struct {
	// Run is the ID of the run that took it.
	Run   string
	State baseline.State
	// Digest is used to redact a present state before it is compared with State; nil for a State with plain names.
	Digest func(name string) string
	// Passed are newer baselines that are from before the update, too, and cannot be read.
	Passed []*AbsentError
}

// index describes a baseline.
type index struct {
	Format    int       `json:"format"`
	Taken     time.Time `json:"taken"`
	ClusterID string    `json:"clusterID"`
	Version   string    `json:"version"`
	Image     string    `json:"image"`
	Names     Names     `json:"names"`
	Parts     int       `json:"parts"`
	Bytes     int       `json:"bytes"`
	SHA256    string    `json:"sha256"`
}

// Put stores the baseline of a run that has a record, by its ID, and replaces an earlier baseline of the run. Until all
// of it is written, there is none. It returns a *record.NotFoundError for a run without a record, and a
// *record.UnauthenticError without the key of the records, because such a baseline would never count.
func (s *Store) Put(ctx context.Context, id string, state baseline.State, names Names) error {
	if names == None {
		return nil
	}
	beside, err := s.records.Beside(ctx, id)
	if err != nil {
		return fmt.Errorf("could not store the baseline: %w", err)
	}
	if names == Digests {
		state = state.Redacted(beside.Key.Digest)
	}
	packed, err := state.Pack()
	if err != nil {
		return err
	}
	made := index{
		Format: format, Taken: state.Taken.UTC().Truncate(time.Second), ClusterID: state.ClusterID, Version: state.Version, Image: state.Image,
		Names: names, Bytes: len(packed), SHA256: digestOf(packed),
	}
	for part := range slices.Chunk(packed, maxPart) {
		made.Parts++
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: partName(beside.Run(), made.Parts)},
			BinaryData: map[string][]byte{recordformat.KeyPart: part},
		}
		if err := beside.Write(ctx, object); err != nil {
			return err
		}
	}
	text, err := json.Marshal(made)
	if err != nil {
		return fmt.Errorf("could not encode the subject of the baseline: %w", err)
	}
	return beside.Write(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: indexName(beside.Run()), Labels: map[string]string{recordformat.LabelBaseline: beside.Run()}},
		Data:       map[string]string{recordformat.KeyBaseline: string(text)},
	})
}

// Get reads the baseline of a run by its ID. It returns an *[AbsentError] if no baseline counts.
func (s *Store) Get(ctx context.Context, id string) (Baseline, error) {
	object, err := s.records.Object(ctx, indexName(id))
	if err != nil {
		return Baseline{}, fmt.Errorf("could not read the baseline of run %s: %w", id, err)
	}
	if object == nil {
		return Baseline{}, &AbsentError{Reason: NotTaken, Run: id, Message: fmt.Sprintf("run %s has stored none", id)}
	}
	loaded, err := s.records.Key(ctx)
	if err != nil {
		return Baseline{}, err
	}
	found := storedOf(object, loaded)
	if found.Run != id { // names have only the first digits of an ID
		return Baseline{}, &AbsentError{Reason: NotTaken, Run: id, Message: fmt.Sprintf("run %s has stored none", id)}
	}
	return s.read(ctx, found, loaded)
}

// Before reads the baseline of the last update in the history of ClusterVersion, newest entry first. It returns an
// *[AbsentError] if no baseline counts. It makes one request for a list, one for the key, and one for each part.
func (s *Store) Before(ctx context.Context, clusterID string, history []configv1.UpdateHistory) (Baseline, error) {
	stored, loaded, err := s.list(ctx)
	if err != nil {
		return Baseline{}, err
	}
	counting, err := Choose(candidatesOf(stored), history, clusterID)
	if err != nil {
		return Baseline{}, err
	}
	var passed []*AbsentError
	for _, each := range counting {
		read, err := s.read(ctx, stored[each.Run], loaded)
		absent, isAbsent := errors.AsType[*AbsentError](err)
		if !isAbsent {
			read.Passed = passed
			return read, err
		}
		passed = append(passed, absent)
	}
	return Baseline{}, passed[0]
}

// Taken are the stored baselines, of any update, without their content, for [Choose].
func (s *Store) Taken(ctx context.Context) ([]Candidate, error) {
	stored, _, err := s.list(ctx)
	return candidatesOf(stored), err
}

// list are the stored baselines by the ID of the run, and the key of the records.
func (s *Store) list(ctx context.Context) (map[string]stored, recordformat.LoadedKey, error) {
	objects, err := s.records.Headers(ctx, recordformat.LabelBaseline)
	if err != nil {
		return nil, recordformat.LoadedKey{}, fmt.Errorf("could not list the baselines: %w", err)
	}
	loaded, err := s.records.Key(ctx)
	if err != nil {
		return nil, recordformat.LoadedKey{}, err
	}
	all := map[string]stored{}
	for i := range objects {
		found := storedOf(&objects[i], loaded)
		all[found.Run] = found
	}
	return all, loaded, nil
}

func candidatesOf(all map[string]stored) []Candidate {
	var candidates []Candidate
	for _, each := range all {
		candidates = append(candidates, each.Candidate)
	}
	return candidates
}

// stored is a baseline whose parts were not read.
type stored struct {
	Candidate
	object *corev1.ConfigMap
	index  index
}

// storedOf is the baseline with this index.
func storedOf(object *corev1.ConfigMap, loaded recordformat.LoadedKey) stored {
	found := stored{object: object, Candidate: Candidate{Run: object.Labels[recordformat.LabelBaseline]}}
	found.Authentication = recordstore.VerifyBeside(object, found.Run, loaded)
	if found.Authentication.State != record.Authentic {
		return found
	}
	if err := json.Unmarshal([]byte(object.Data[recordformat.KeyBaseline]), &found.index); err != nil {
		found.Unreadable = fmt.Sprintf("%s of configmap %q cannot be decoded: %v", recordformat.KeyBaseline, object.Name, err)
		return found
	}
	found.Taken, found.ClusterID, found.Version, found.Image = found.index.Taken, found.index.ClusterID, found.index.Version, found.index.Image
	found.Judged = object.Data[recordformat.KeyJudged]
	if found.index.Format != format {
		found.Unreadable = fmt.Sprintf("it has the format %d of another version of the tool; this one reads %d", found.index.Format, format)
	}
	return found
}

// read reads the parts of a baseline.
func (s *Store) read(ctx context.Context, of stored, loaded recordformat.LoadedKey) (Baseline, error) {
	if err := of.refused(); err != nil {
		return Baseline{}, err
	}
	packed, err := s.parts(ctx, of, loaded)
	if err != nil {
		return Baseline{}, err
	}
	state, err := baseline.Unpack(packed)
	if err != nil {
		return Baseline{}, of.unreadable("%v", err)
	}
	read := Baseline{Run: of.Run, State: state}
	if of.index.Names != Plain {
		read.Digest = loaded.Key.Digest
	}
	return read, nil
}

func (s *Store) parts(ctx context.Context, of stored, loaded recordformat.LoadedKey) ([]byte, error) {
	if of.index.Parts < 1 || of.index.Parts > maxParts {
		return nil, of.unreadable("it has %d parts; it must have 1 to %d", of.index.Parts, maxParts)
	}
	var packed []byte
	for number := range of.index.Parts {
		name := partName(of.Run, number+1)
		object, err := s.records.Object(ctx, name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("could not read part %d of the baseline of run %s: %w", number+1, of.Run, err)
		case object == nil:
			return nil, of.unreadable("part %d of %d is missing: configmap %q does not exist", number+1, of.index.Parts, name)
		}
		if verified := loaded.Verify(object, of.Run, of.object.OwnerReferences[0].UID); verified.State != record.Authentic {
			return nil, unauthentic(of.Run, verified)
		}
		packed = append(packed, object.BinaryData[recordformat.KeyPart]...)
	}
	if len(packed) != of.index.Bytes || digestOf(packed) != of.index.SHA256 {
		return nil, of.unreadable("its parts were not written together")
	}
	return packed, nil
}

func digestOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

func indexName(id string) string { return recordformat.HeaderName(id) + "-baseline" }

func partName(id string, number int) string { return fmt.Sprintf("%s-%d", indexName(id), number) }

// Needs are the permissions for Put and PutJudgement, including ReadNeeds. The permissions of package recordstore for a
// run include them.
func Needs() access.Needs {
	request := mapsRequest()
	return access.Needs{Required: access.Verbs(request, "get", "list", "create", "update"), Optional: ReadNeeds().Optional}
}

// ReadNeeds are the permissions for Get, Before, Judgement and Judgements. Without the optional one, nothing that is
// stored counts.
func ReadNeeds() access.Needs {
	return access.Needs{Required: access.Verbs(mapsRequest(), "get", "list"), Optional: recordstore.ReadNeeds().Optional}
}

func mapsRequest() access.Request {
	return access.Request{Resource: "configmaps", Namespace: record.Namespace}
}

const (
	keyCourse = "course.gz"
	// maxCourse bounds the text of a course, in bytes.
	maxCourse = 8 << 20
)

// stated is a course, and the update that it is of.
type stated struct {
	Update string          `json:"update"`
	Past   json.RawMessage `json:"past"`
}

// PutPast stores the observations of samples after an update beside the record of its run, and replaces earlier ones.
// update identifies the update. It returns a *record.NotFoundError for a run without a record.
func (s *Store) PutPast(ctx context.Context, id, update string, past afterupdate.Past) error {
	packed, err := past.Pack()
	if err != nil {
		return err
	}
	text, err := json.Marshal(stated{Update: update, Past: packed})
	if err != nil {
		return fmt.Errorf("could not encode the observations of the samples: %w", err)
	}
	if packed, err = recordformat.Pack(text); err != nil {
		return err
	}
	beside, err := s.records.Beside(ctx, id)
	if err != nil {
		return fmt.Errorf("could not store the observations of the samples: %w", err)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: courseName(beside.Run())}, BinaryData: map[string][]byte{keyCourse: packed}}
	err = beside.Change(ctx, made.Name, func(found *corev1.ConfigMap) *corev1.ConfigMap {
		if found != nil && bytes.Equal(found.BinaryData[keyCourse], packed) {
			return nil
		}
		return made.DeepCopy()
	})
	if err != nil {
		return fmt.Errorf("could not store the observations of the samples beside the record of run %s: %w", beside.Run(), err)
	}
	return nil
}

// Past reads the observations of earlier samples after an update. It returns false if none count: nothing is stored, or
// it belongs to another update, or is not authentic.
func (s *Store) Past(ctx context.Context, id, update string) (afterupdate.Past, bool, error) {
	object, err := s.records.Object(ctx, courseName(id))
	if err != nil || object == nil {
		return afterupdate.Past{}, false, err
	}
	loaded, err := s.records.Key(ctx)
	if err != nil {
		return afterupdate.Past{}, false, err
	}
	if recordstore.VerifyBeside(object, id, loaded).State != record.Authentic {
		return afterupdate.Past{}, false, nil
	}
	past, err := pastOf(object.BinaryData[keyCourse], update)
	return past, err == nil, nil // an error means that another version of the tool stored it
}

func pastOf(data []byte, update string) (afterupdate.Past, error) {
	text, err := recordformat.Unpack(data, maxCourse)
	if err != nil {
		return afterupdate.Past{}, err
	}
	var of stated
	if err := json.Unmarshal(text, &of); err != nil {
		return afterupdate.Past{}, err
	}
	if of.Update != update {
		return afterupdate.Past{}, fmt.Errorf("the samples are from the update %s", of.Update)
	}
	return afterupdate.UnpackPast(of.Past)
}

func courseName(id string) string { return recordformat.HeaderName(id) + "-aftercourse" }
