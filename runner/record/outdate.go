package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/retry"
	"github.com/openshift/update-preflight/collector/words"
)

// maxCause bounds the cause of the end of a verdict, in bytes.
const maxCause = 512

// Outdate ends the verdict of a complete run at that time, by the clock of the cluster, for
// a cause such as a node that has changed: its record states both for every reader. The
// first cause stays. A record that is not authentic is not changed; the error is an
// *UnauthenticError.
func (s *Store) Outdate(ctx context.Context, id, cause string, now time.Time) error {
	object, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	return s.outdate(ctx, object, cause, now)
}

// endEarlier returns the headers of the runs that ended before this one, and ends their
// verdicts on the same update if this one is complete.
func (s *Store) endEarlier(ctx context.Context, ending Record, phase Phase, now time.Time) ([]corev1.ConfigMap, error) {
	headers, err := s.listHeaders(ctx, fmt.Sprintf("%s,%s!=%s", Label, labelPhase, Running))
	if err != nil {
		return nil, fmt.Errorf("could not list the earlier records: %w", err)
	}
	headers = slices.DeleteFunc(headers, func(header corev1.ConfigMap) bool { return header.Labels[Label] == ending.ID })
	if phase != Complete {
		return headers, nil
	}
	return headers, s.supersede(ctx, ending, headers, now)
}

// supersede ends the verdicts of the earlier runs of the same update among the headers of
// ended runs, so that none of them counts again where the record of this run is deleted.
func (s *Store) supersede(ctx context.Context, by Record, headers []corev1.ConfigMap, now time.Time) error {
	for i := range headers {
		found, err := parse(&headers[i])
		if err != nil || found.record.ID == by.ID || found.record.Target.Digest() != by.Target.Digest() || found.record.Provisional != by.Provisional {
			continue // what is unreadable has no verdict
		}
		if found.record.Phase != Complete || found.record.Ended != "" {
			continue
		}
		err = s.outdate(ctx, &headers[i], "run "+by.ID+" of the same target is newer", now)
		if _, unauthentic := errors.AsType[*UnauthenticError](err); err != nil && !unauthentic {
			return err
		}
	}
	return nil
}

// outdate ends the verdict of the record with this header, also where another client
// changes the header meanwhile. A record that was deleted has none.
func (s *Store) outdate(ctx context.Context, object *corev1.ConfigMap, cause string, now time.Time) error {
	loaded, err := s.readKey(ctx)
	if err != nil {
		return err
	}
	name := object.Name
	return retry.Do(ctx, func(ctx context.Context) error {
		for range conflicts {
			err := s.writeEnd(ctx, loaded, object, cause, now)
			if !contested(err) {
				return err
			}
			if object, err = s.get(ctx, name); err != nil || object == nil {
				return err
			}
		}
		return fmt.Errorf("could not end the verdict of %s: another client repeatedly changed it", name)
	})
}

// writeEnd writes the header with the end of its verdict, unless it has one.
func (s *Store) writeEnd(ctx context.Context, loaded loadedKey, object *corev1.ConfigMap, cause string, now time.Time) error {
	object = object.DeepCopy() // a request that failed is repeated with what was read
	id := object.Labels[Label]
	if verified := loaded.verify(object, id, object.UID); verified.State != Authentic {
		return &UnauthenticError{ID: id, Authentication: verified}
	}
	changed, err := endVerdict(object, words.Line(cause, maxCause), formatTime(now))
	if err != nil || !changed {
		return err
	}
	loaded.key.seal(object, id)
	_, err = s.maps().Update(ctx, object, metav1.UpdateOptions{})
	return err
}

// endVerdict changes the header of a complete run; false if its verdict has ended already.
func endVerdict(object *corev1.ConfigMap, cause, now string) (bool, error) {
	var text summary
	if err := yaml.Unmarshal([]byte(object.Data[keySummary]), &text); err != nil {
		return false, fmt.Errorf("could not decode %s of %s: %w", keySummary, object.Name, err)
	}
	if text.Phase != Complete || text.Ended != "" {
		return false, nil
	}
	var file verdictFile
	if err := json.Unmarshal([]byte(object.Data[keyVerdict]), &file); err != nil {
		return false, fmt.Errorf("could not decode %s of %s: %w", keyVerdict, object.Name, err)
	}
	text.Ended, file.Ended, file.ValidUntil = cause, cause, min(file.ValidUntil, now)
	summarized, err := yaml.Marshal(text)
	if err != nil {
		return false, err
	}
	object.Data[keySummary] = string(summarized)
	object.Data[keyVerdict], err = file.encode()
	return err == nil, err
}
