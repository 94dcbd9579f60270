package story

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
)

// When what leads to the judgement of an update happened, before the present. A rollout settles minutes after its end,
// and what was broken by it counts after minutes more, for which no story waits.
const (
	baselineAge  = 2 * time.Hour
	startAge     = 110 * time.Minute
	completedAge = time.Hour
	brokenAge    = 50 * time.Minute
)

// installed is when the clusters of the stories were installed.
func installed() time.Time { return time.Now().AddDate(0, -1, 0) }

// Update reports that a cluster was updated to To, in place of the cluster-version operator (CVO), and has been since
// an hour. The baseline that the last run stored is moved before the start of the update; what it has is not changed.
func Update(ctx context.Context, c *cluster.Cluster, image string) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	runs, err := recordstore.New(client).List(ctx)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return fmt.Errorf("no run is recorded in the cluster of %s", c.Dir)
	}
	baselines, now := baselinestore.New(client), time.Now()
	stored, err := baselines.Get(ctx, runs[0].ID)
	if err != nil {
		return err
	}
	stored.State.Taken = now.Add(-baselineAge)
	if err := baselines.Put(ctx, stored.Run, stored.State, baselinestore.Plain); err != nil {
		return err
	}
	return openshift.Complete(ctx, c.Config,
		openshift.Completion{Version: To, Image: image, Started: now.Add(-startAge), Completed: now.Add(-completedAge)})
}
