package baselinestore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

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

// PutPast stores beside the record of a run what samples after its update have shown, over what an earlier one has. update
// identifies the update. The error is a *record.NotFoundError for a run without a record.
func (s *Store) PutPast(ctx context.Context, id, update string, past afterupdate.Past) error {
	packed, err := past.Pack()
	if err != nil {
		return err
	}
	text, err := json.Marshal(stated{Update: update, Past: packed})
	if err != nil {
		return fmt.Errorf("could not encode what the samples have shown: %w", err)
	}
	if packed, err = recordformat.Pack(text); err != nil {
		return err
	}
	beside, err := s.records.Beside(ctx, id)
	if err != nil {
		return fmt.Errorf("could not store what the samples have shown: %w", err)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: courseName(beside.Run())}, BinaryData: map[string][]byte{keyCourse: packed}}
	err = beside.Change(ctx, made.Name, func(found *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		if found != nil && bytes.Equal(found.BinaryData[keyCourse], packed) {
			return nil, nil //nolint:nilnil // it stays as it is
		}
		return made.DeepCopy(), nil
	})
	if err != nil {
		return fmt.Errorf("could not store what the samples have shown beside the record of run %s: %w", beside.Run(), err)
	}
	return nil
}

// Past reads what earlier samples after an update have shown; false where there is nothing that counts: nothing stored, of another
// update, or not authentic.
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
	text, err := recordformat.Unpack(object.BinaryData[keyCourse], maxCourse)
	var of stated
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	if err != nil || of.Update != update {
		return afterupdate.Past{}, false, nil //nolint:nilerr // of another version of the tool
	}
	past, err := afterupdate.UnpackPast(of.Past)
	return past, err == nil, nil
}

func courseName(id string) string { return recordformat.HeaderName(id) + "-aftercourse" }
