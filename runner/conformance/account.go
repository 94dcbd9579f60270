package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

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

const labelConformance = "preflight.openshift.io/conformance"

type namespaces struct {
	client  kubernetes.Interface
	id      string
	created []string
}

// make creates the missing namespaces of the plan.
// A preflight creates none, but a manifest may be tested before its operator exists.
func (n *namespaces) make(ctx context.Context, plan jobplan.Plan, progress func(string)) error {
	for _, name := range namespacesOf(plan) {
		_, err := n.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("could not get namespace %q: %w", name, err)
		}
		progress("creating namespace " + name)
		if err := n.makeOne(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// makeOne creates a namespace and waits until pods can be created in it.
func (n *namespaces) makeOne(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelConformance: n.id}}}
	if _, err := n.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("could not create namespace %q: %w", name, err)
	}
	n.created = append(n.created, name)
	err := wait.PollUntilContextTimeout(ctx, pollInterval, cleanupTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := n.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("namespace %q has no ServiceAccount \"default\": %w", name, err)
	}
	return nil
}

const pollInterval = 200 * time.Millisecond

// remove deletes the created namespaces and waits until they are gone, also after an interruption.
func (n *namespaces) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var failed error
	for _, name := range n.created {
		if err := n.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			failed = errors.Join(failed, fmt.Errorf("could not delete namespace %q: %w", name, err))
		}
	}
	for _, name := range n.created {
		err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
			_, err := n.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("namespace %q was not deleted in time: %w", name, err))
		}
	}
	return failed
}

func namespacesOf(plan jobplan.Plan) []string {
	var names []string
	for _, check := range plan.Checks {
		names = append(names, check.Job.Namespace)
	}
	for _, object := range plan.Supporting {
		if object.GetNamespace() != "" {
			names = append(names, object.GetNamespace())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
