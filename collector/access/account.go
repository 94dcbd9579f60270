package access

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Rights are the write permissions of one ServiceAccount.
type Rights struct {
	// Account is its name.
	Account types.NamespacedName
	// Writes are the write requests that it may make by roles that are bound to it, or to
	// the ServiceAccounts of its namespace; sorted. A request that connects to running pods
	// or nodes, or impersonates, is a write request.
	Writes []Request
	// Roles counts the roles that are bound to it.
	Roles int
	// Unserved are the versions of APIs whose resources the API server could not list, so
	// that Writes lacks them; sorted.
	Unserved []string
}

// Writes finds out which write requests ServiceAccounts may make by their roles: every
// write verb of every resource, in the account's own namespace, in those with a
// RoleBinding for it, and in the whole cluster. The accounts need not exist. An error
// means that a binding or role could not be read, or that more than 200 roles are bound
// to an account. Its needs are those of Grants.
func Writes(ctx context.Context, client kubernetes.Interface, accounts []types.NamespacedName) ([]Rights, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	lists, unserved, err := served(client.Discovery())
	if err != nil {
		return nil, err
	}
	bound, err := roleBindings(ctx, client.RbacV1(), accounts)
	if err != nil {
		return nil, err
	}
	read := newRoleReader(client.RbacV1(), maxBindings)
	var all []Rights
	for _, account := range accounts {
		granted, err := read.permissions(ctx, "ServiceAccount "+account.String(), bound[account])
		if err != nil {
			return nil, err
		}
		writes := granted.writes(requestsOf(lists, granted.namespaces(account.Namespace)))
		all = append(all, Rights{Account: account, Writes: writes, Roles: len(bound[account]), Unserved: unserved})
	}
	return all, nil
}
