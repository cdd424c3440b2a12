#include <stdio.h>
#include "list.h"
#define MAX_ITEMS 10
#define SQUARE(x) ((x) * (x))
/* A node of the list. */
struct node {
    int value;
    struct node *next;
};
typedef struct { double x, y; } point;
typedef unsigned long id_t2;
enum color { RED, GREEN };
union both { int i; float f; };
static int count = 0;
int add(int a, int b);
struct node *push(struct node *head, int value) {
    struct node *fresh = make_node(value);
    fresh->next = head;
    return fresh;
}
static void each(struct node *head, void (*visit)(struct node *)) {
    for (struct node *at = head; at; at = at->next) visit(at);
    printf("%d\n", SQUARE(count));
}
