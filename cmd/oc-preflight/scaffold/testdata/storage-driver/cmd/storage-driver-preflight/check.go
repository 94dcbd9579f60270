package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// check is what cluster-foo-operator asks before an update. Administrators accept a
// finding by its name, so the name stays the same from release to release.
//
// What Run reads from the cluster is declared as Rules beside it. They become
// the permissions of the Job in the manifest, and there are no others.
func check() preflight.Check {
	return preflight.Check{
		Name:        "StorageDriver",
		Description: "The update does not go back to an older minor version.",
		Timeout:     time.Minute,
		Run:         run,
	}
}

// run fails for an update that goes back: an older cluster-foo-operator may not
// understand what a newer one has stored.
//
// That is known from the versions alone. Ask here as well what only the cluster
// knows: with ctx in every request, t.Failf for what you see, and t.Remedyf with
// the command that helps. Return the error of a request that fails. It means
// "could not tell", which is never a pass.
func run(_ context.Context, t *preflight.T) error {
	update := t.Update()
	from, err := minorVersion(update.From)
	if err != nil {
		return fmt.Errorf("version of the cluster: %w", err)
	}
	to, err := minorVersion(update.To)
	if err != nil {
		return fmt.Errorf("version to update to: %w", err)
	}
	if update.From == update.To {
		t.Skipf("the cluster runs %s already", update.To)
		return nil
	}
	if slices.Compare(to, from) < 0 {
		t.Reason("Downgrade")
		t.Failf("%s would replace the newer %s, and may not understand what that has stored", update.To, update.From)
		t.Remedyf("Choose a release that is not older: oc adm upgrade")
	}
	return nil
}

// minorVersion is 4 and 21 for 4.21.3.
func minorVersion(version string) ([]int, error) {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d.", &major, &minor); err != nil {
		return nil, fmt.Errorf("%q is not like 4.21.3 (on a laptop: --from 4.20.5 --to 4.21.3)", version)
	}
	return []int{major, minor}, nil
}
