package recordstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
)

// Outdate ends the verdict of a complete run at that time, by the clock of the cluster, for
// a cause such as a node that has changed: its record states both for every reader. The
// first cause stays. A record that is not authentic is not changed; the error is an
// *UnauthenticError.
func (s *Store) Outdate(ctx context.Context, id, cause string, now time.Time) error {
	object, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	return outdate(ctx, s, object, cause, now)
}

// EndEarlier returns the headers of the runs that ended before this one, and ends their
// verdicts on the same update if this one is complete. A Ready with another selection ends none:
// it may cover less.
func (s *Store) EndEarlier(ctx context.Context, ending record.Record, as record.Ending, now time.Time) ([]corev1.ConfigMap, error) {
	headers, err := s.Headers(ctx, fmt.Sprintf("%s,%s!=%s", record.Label, record.LabelPhase, record.Running))
	if err != nil {
		return nil, fmt.Errorf("could not list the earlier records: %w", err)
	}
	headers = slices.DeleteFunc(headers, func(header corev1.ConfigMap) bool { return header.Labels[record.Label] == ending.ID })
	if as.Phase != record.Complete {
		return headers, nil
	}
	ending.Decision = string(as.Verdict.Decision)
	return headers, supersede(ctx, s, ending, headers, now)
}

// supersede ends the verdicts of the earlier runs of the same update among the headers of
// ended runs, so that none of them counts again where the record of this run is deleted.
func supersede(ctx context.Context, s *Store, by record.Record, headers []corev1.ConfigMap, now time.Time) error {
	for i := range headers {
		found, err := recordformat.Parse(&headers[i])
		if err != nil || found.Record.ID == by.ID || found.Record.Target.Digest() != by.Target.Digest() || found.Record.Provisional != by.Provisional {
			continue // what is unreadable has no verdict
		}
		if found.Record.Phase != record.Complete || found.Record.Ended != "" || by.Decision == string(verdict.Ready) && found.Record.Selection != by.Selection {
			continue
		}
		err = outdate(ctx, s, &headers[i], "run "+by.ID+" of the same target is newer", now)
		if _, unauthentic := errors.AsType[*record.UnauthenticError](err); err != nil && !unauthentic {
			return err
		}
	}
	return nil
}

// outdate ends the verdict of the record with this header, also where another client
// changes the header meanwhile. A record that was deleted has none.
func outdate(ctx context.Context, s *Store, object *corev1.ConfigMap, cause string, now time.Time) error {
	loaded, err := readKey(ctx, s.client)
	if err != nil {
		return err
	}
	name := object.Name
	return retry.Do(ctx, func(ctx context.Context) error {
		for range Conflicts {
			changed := object.DeepCopy() // a request that failed is repeated with what was read
			ends, err := recordformat.EndVerdict(changed, loaded, cause, now)
			if ends {
				_, err = s.Maps().Update(ctx, changed, metav1.UpdateOptions{})
			}
			if !Contested(err) {
				return err
			}
			if object, err = s.Object(ctx, name); err != nil || object == nil {
				return err
			}
		}
		return fmt.Errorf("could not end the verdict of %s: another client repeatedly changed it", name)
	})
}
