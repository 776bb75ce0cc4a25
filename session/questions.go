package session

import (
	"context"
	"slices"
	stdsync "sync"

	"rentop/remote"
)

// questions holds what waits for the person in the screen.
type questions struct {
	mu     stdsync.Mutex
	next   int
	open   []Question
	reply  map[int]chan remote.Answer
	notify func()
}

// Ask implements remote.Asker by waiting for answer.
func (q *questions) Ask(ctx context.Context, rq remote.Question) (remote.Answer, error) {
	ch := make(chan remote.Answer, 1)
	q.mu.Lock()
	q.next++
	id := q.next
	if q.reply == nil {
		q.reply = map[int]chan remote.Answer{}
	}
	q.reply[id] = ch
	q.open = append(q.open, Question{ID: id, Question: rq})
	q.mu.Unlock()
	q.notify()
	defer func() {
		q.mu.Lock()
		delete(q.reply, id)
		q.open = slices.DeleteFunc(q.open, func(x Question) bool { return x.ID == id })
		q.mu.Unlock()
		q.notify()
	}()
	select {
	case a := <-ch:
		return a, nil
	case <-ctx.Done():
		return remote.Answer{}, ctx.Err()
	}
}

func (q *questions) answer(id int, a remote.Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ch := q.reply[id]; ch != nil {
		select {
		case ch <- a:
		default: // answered already
		}
	}
}

func (q *questions) list() []Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.open)
}
