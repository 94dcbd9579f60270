package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// keySpace is the data of an API server in its etcd, at the URL of etcd's clients, through the JSON gateway of
// etcd (etcd.io/docs/latest/dev-guide/api_grpc_gateway).
type keySpace string

// objects is the prefix of the keys of all objects.
const objects = "/registry/"

// operationsPerRequest is below the limit of etcd (--max-txn-ops), and keeps a request
// below the limit of its size with the values of large objects (--max-request-bytes).
const operationsPerRequest = 20

// keyValue is a key with its value. JSON has both in base64.
type keyValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
}

// stored is a key with its value, or without, and the revision of its last change.
type stored struct {
	keyValue

	Revision int64 `json:"mod_revision,string"`
}

// operation is a part of a transaction: one of the two.
type operation struct {
	Put    *keyValue `json:"requestPut,omitempty"`
	Delete *keyValue `json:"requestDeleteRange,omitempty"`
}

// Revisions has the revision of the last change of each key that the API server has stored, except of the leases by which API servers are
// known to be alive. It is an error for an existing cluster, whose etcd is not known.
func (c *Cluster) Revisions(ctx context.Context) (map[string]int64, error) {
	if c.Etcd == "" {
		return nil, errors.New("the etcd of this cluster is not known")
	}
	found, err := keySpace(c.Etcd).read(ctx, false)
	revisions := make(map[string]int64, len(found))
	for key, each := range found {
		revisions[key] = each.Revision
	}
	return revisions, err
}

// read returns each key, except of the leases by which API servers are known to be alive.
func (k keySpace) read(ctx context.Context, withValues bool) (map[string]stored, error) {
	var found struct {
		KVs []stored `json:"kvs"`
	}
	request := struct {
		Key      []byte `json:"key"`
		End      []byte `json:"range_end"`
		KeysOnly bool   `json:"keys_only"`
	}{Key: []byte(objects), End: []byte(objects[:len(objects)-1] + string(objects[len(objects)-1]+1)), KeysOnly: !withValues}
	if err := k.call(ctx, "range", request, &found); err != nil {
		return nil, err
	}
	all := map[string]stored{}
	for _, each := range found.KVs {
		if !strings.HasPrefix(string(each.Key), objects+"leases/kube-system/") {
			all[string(each.Key)] = each
		}
	}
	return all, nil
}

// values returns the value of each key, as read does.
func (k keySpace) values(ctx context.Context) (map[string][]byte, error) {
	all, err := k.read(ctx, true)
	if err != nil {
		return nil, err
	}
	values := map[string][]byte{}
	for key, each := range all {
		values[key] = each.Value
	}
	return values, nil
}

// restore makes the keys and values those that values has returned, and returns the keys
// whose values it has written.
func (k keySpace) restore(ctx context.Context, want map[string][]byte) (written []string, err error) {
	got, err := k.values(ctx)
	if err != nil {
		return nil, err
	}
	changed := change{values: want}
	for key := range got {
		if _, ok := want[key]; !ok {
			changed.deleted = append(changed.deleted, key)
		}
	}
	for key, value := range want {
		if !bytes.Equal(got[key], value) {
			changed.written = append(changed.written, key)
		}
	}
	_, err = k.apply(ctx, changed)
	return changed.written, err
}

// put writes these values.
func (k keySpace) put(ctx context.Context, values map[string][]byte) error {
	_, err := k.apply(ctx, change{written: slices.Collect(maps.Keys(values)), values: values})
	return err
}

// change is a change of keys. Values has those of the keys that are written.
type change struct {
	deleted, written []string
	values           map[string][]byte
}

// apply makes a change, and returns the revision of each key that it has written. API servers see it, later, as
// they see that of another API server.
func (k keySpace) apply(ctx context.Context, c change) (revisions map[string]int64, err error) {
	var operations []operation
	for _, key := range c.deleted {
		operations = append(operations, operation{Delete: &keyValue{Key: []byte(key)}})
	}
	for _, key := range c.written {
		operations = append(operations, operation{Put: &keyValue{Key: []byte(key), Value: c.values[key]}})
	}
	revisions = map[string]int64{}
	for some := range slices.Chunk(operations, operationsPerRequest) {
		var made struct {
			Header struct {
				Revision int64 `json:"revision,string"`
			} `json:"header"`
		}
		if err := k.call(ctx, "txn", map[string][]operation{"success": some}, &made); err != nil {
			return nil, err
		}
		for _, each := range some {
			if each.Put != nil {
				revisions[string(each.Put.Key)] = made.Header.Revision
			}
		}
	}
	return revisions, nil
}

// call calls a method of etcd's KV service.
func (k keySpace) call(ctx context.Context, method string, request, response any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, string(k)+"/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(call)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(answer.Body)
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcd %s: %s: %s", method, answer.Status, bytes.TrimSpace(data))
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, response)
}
