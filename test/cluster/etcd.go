package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// keySpace is the data of an API server in its etcd, through the JSON gateway of etcd
// (etcd.io/docs/latest/dev-guide/api_grpc_gateway).
type keySpace struct {
	// URL is that of etcd's clients.
	URL string `json:"url"`
}

// objects is the prefix of the keys of all objects.
const objects = "/registry/"

// operationsPerRequest is below the limit of etcd (--max-txn-ops), and keeps a request
// below the limit of its size with the values of large objects (--max-request-bytes).
const operationsPerRequest = 20

// keyValue is a key with its value. JSON has both in base64.
type keyValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// operation is a part of a transaction: one of the two.
type operation struct {
	Put    *keyValue `json:"requestPut,omitempty"`
	Delete *keyValue `json:"requestDeleteRange,omitempty"`
}

// read returns the value of each key, except of the leases by which API servers are
// known to be alive.
func (k keySpace) read(ctx context.Context) (map[string][]byte, error) {
	var found struct {
		KVs []keyValue `json:"kvs"`
	}
	end := objects[:len(objects)-1] + string(objects[len(objects)-1]+1)
	if err := k.call(ctx, "range", map[string][]byte{"key": []byte(objects), "range_end": []byte(end)}, &found); err != nil {
		return nil, err
	}
	values := map[string][]byte{}
	for _, each := range found.KVs {
		if !strings.HasPrefix(string(each.Key), objects+"leases/kube-system/") {
			values[string(each.Key)] = each.Value
		}
	}
	return values, nil
}

// restore makes the keys and values those that read has returned, and returns the keys
// whose values it has written. API servers see each change, later, as they see that of
// another API server.
func (k keySpace) restore(ctx context.Context, want map[string][]byte) (written []string, err error) {
	got, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	var changes []operation
	for key := range got {
		if _, ok := want[key]; !ok {
			changes = append(changes, operation{Delete: &keyValue{Key: []byte(key)}})
		}
	}
	for key, value := range want {
		if !bytes.Equal(got[key], value) {
			written = append(written, key)
			changes = append(changes, operation{Put: &keyValue{Key: []byte(key), Value: value}})
		}
	}
	return written, k.change(ctx, changes)
}

// put writes these values.
func (k keySpace) put(ctx context.Context, values map[string][]byte) error {
	var changes []operation
	for key, value := range values {
		changes = append(changes, operation{Put: &keyValue{Key: []byte(key), Value: value}})
	}
	return k.change(ctx, changes)
}

// change executes operations in transactions.
func (k keySpace) change(ctx context.Context, changes []operation) error {
	for len(changes) > 0 {
		some := min(len(changes), operationsPerRequest)
		if err := k.call(ctx, "txn", map[string][]operation{"success": changes[:some]}, &struct{}{}); err != nil {
			return err
		}
		changes = changes[some:]
	}
	return nil
}

// call calls a method of etcd's KV service.
func (k keySpace) call(ctx context.Context, method string, request, response any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL+"/v3/kv/"+method, bytes.NewReader(body))
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
