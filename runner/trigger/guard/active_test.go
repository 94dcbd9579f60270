package guard_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/test/user"
)

// permitted is a client with exactly these permissions.
func permitted(t *testing.T, needs access.Needs) dynamic.Interface {
	t.Helper()
	return dynamic.NewForConfigOrDie(user.With(t, config, needs))
}

func allows(requests []access.Request, request access.Request) bool {
	return slices.ContainsFunc(requests, func(wider access.Request) bool { return access.Includes(wider, request) })
}

// The permissions of each choice are sufficient, and each of them is needed.
func TestNeeds(t *testing.T) {
	createNamespace(t)
	state := guard.State{Verdicts: []guard.Verdict{chosen(verdict("5", "4.18.5", "Blocked"))}}
	apply := func(chosen guard.Choice) func(context.Context, dynamic.Interface) error {
		return func(ctx context.Context, client dynamic.Interface) error {
			made, err := guard.NewSet(client, chosen, "v1.0.0", at(start))
			if err == nil {
				_, err = made.Apply(ctx, state)
			}
			return err
		}
	}
	all := guard.Choice{Alert: true, ClusterOperator: true, Admission: guard.Deny}
	for name, tc := range map[string]struct {
		reason string
		needs  access.Needs
		// before is applied by an administrator.
		before *guard.Choice
		// recreates is true where the ClusterOperator is then deleted.
		recreates bool
		operation func(context.Context, dynamic.Interface) error
	}{
		"On":  {reason: "each switch is applied", needs: all.Needs(), operation: apply(all)},
		"Off": {reason: "each switch is removed", needs: guard.Choice{}.Needs(), before: &all, recreates: true, operation: apply(guard.Choice{})},
		"Uninstall": {
			reason: "everything is removed", needs: guard.UninstallNeeds(), before: &all,
			operation: func(ctx context.Context, client dynamic.Interface) error {
				_, err := guard.Uninstall(ctx, client)
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(t *testing.T, needs access.Needs) error {
				t.Helper()
				t.Cleanup(func() { uninstall(context.WithoutCancel(t.Context()), t) })
				if tc.before != nil {
					if err := apply(*tc.before)(t.Context(), client()); err != nil {
						t.Fatal(err)
					}
					if tc.recreates {
						deleteOperator(t)
					}
				}
				return tc.operation(t.Context(), permitted(t, needs))
			}
			t.Run("Sufficient", func(t *testing.T) {
				if err := run(t, tc.needs); err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
			})
			for i, without := range tc.needs.Required {
				needs := access.Needs{Required: slices.Delete(slices.Clone(tc.needs.Required), i, i+1)}
				if allows(needs.Required, without) {
					continue // another permission includes it, and roles have it once
				}
				t.Run("Without "+access.Describe(without), func(t *testing.T) {
					if err := run(t, needs); err == nil || !strings.Contains(strings.ToLower(err.Error()), "forbidden") {
						t.Errorf("%s without it: want a Forbidden error, got %v", tc.reason, err)
					}
				})
			}
		})
	}
}

func deleteOperator(t *testing.T) {
	t.Helper()
	if err := openshift().ConfigV1().ClusterOperators().Delete(t.Context(), "update-preflight", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Without permissions, status reports what it could not read.
func TestActiveWithoutPermissions(t *testing.T) {
	createNamespace(t)
	if found, err := guard.Active(t.Context(), permitted(t, access.Needs{})); !apierrors.IsForbidden(err) || len(found) > 0 {
		t.Errorf("found %v, %v; want a Forbidden error", found, err)
	}
	readers := access.Needs{Required: guard.ReadNeeds().Optional}
	if _, err := guard.Active(t.Context(), permitted(t, readers)); err != nil {
		t.Errorf("with the declared permissions: %v", err)
	}
}
