"""Runs a task on `lathe serve`, loses the connection in the middle, comes back, and prints the bubbles."""
# LATHE_URL=http://127.0.0.1:8090 LATHE_TOKEN=... python3 client.py "the task"
import asyncio, json, os, sys
import websockets

URL = os.environ["LATHE_URL"].replace("http", "ws", 1) + "/ws/agent/interactive/task"
HEADERS = {"Authorization": "Bearer " + os.environ["LATHE_TOKEN"]}
bubbles, place = {}, {}  # by run and id; the last form counts


async def read(socket, stop_at=None):
    """Reads frames until the run ends; stops after `stop_at` bubbles, if asked to."""
    async for text in socket:
        frame = json.loads(text)
        data = frame["data"]
        if "cursor" in frame:
            place.update(session=frame["session_id"], cursor=frame["cursor"])
        if frame["type"] == "bubble":
            bubbles[frame["run_id"], data["id"]] = data["content"]
        elif frame["type"] == "approval" and data["state"] == "asked":
            answer = {"type": "approve", "call_id": data["call_id"], "question": data["question"], "answer": "once"}
            await socket.send(json.dumps(answer))
        elif frame["type"] == "end":
            return True
        if stop_at and len(bubbles) >= stop_at:
            return False


async def main(task):
    async with websockets.connect(URL, additional_headers=HEADERS, max_queue=None) as socket:
        await socket.send(json.dumps({"task": task}))
        ended = await read(socket, stop_at=3)
    while not ended:
        again = f"{URL}?session_id={place['session']}&from={place['cursor']}"
        async with websockets.connect(again, additional_headers=HEADERS, max_queue=None) as socket:
            ended = await read(socket)
    for (_, name), content in bubbles.items():
        print(f"{name}\t{content}")

asyncio.run(main(sys.argv[1]))
