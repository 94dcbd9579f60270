package conformance

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// readAccounts reads the rights of the checks' accounts beyond those of any account:
// with the copies of roles and bindings that the attempt created, and of a ServiceAccount
// of the cluster those of the original, which its copy lacks.
func (s *session) readAccounts(ctx context.Context, plan jobplan.Plan) error {
	accounts := accountcopy.Of(plan)
	names := make([]types.NamespacedName, 0, len(accounts))
	for _, account := range accounts {
		name := account.Name
		if account.Copied {
			name = account.Author
		}
		names = append(names, types.NamespacedName{Namespace: account.Namespace, Name: name})
	}
	found, err := rights.Writes(ctx, s.config.Kubernetes, names)
	if err != nil {
		return err
	}
	s.results.mutex.Lock()
	defer s.results.mutex.Unlock()
	for i, account := range accounts {
		for _, check := range account.Checks {
			s.results.accounts[check] = found[i]
			s.results.reading[check] = bound(plan, account.Namespace, account.Name)
		}
	}
	return nil
}

// bound is true when a binding of the plan grants the account rights.
func bound(plan jobplan.Plan, namespace, name string) bool {
	for _, object := range plan.Supporting {
		var subjects []rbacv1.Subject
		switch binding := object.(type) {
		case *rbacv1.RoleBinding:
			subjects = binding.Subjects
		case *rbacv1.ClusterRoleBinding:
			subjects = binding.Subjects
		}
		for _, subject := range subjects {
			if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace && subject.Name == name {
				return true
			}
		}
	}
	return false
}
